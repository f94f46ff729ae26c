"""The page of benchmarks, as a bilingual source: data/benchmarks.toml says what each table is, data/bench what it gave.

Every number on the page comes from a record in data/bench/<device>; the words beside it, among them what remains where
we are behind, are typed and hold none.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.neighbours import is_quiet
from bench.table import goals
from lab.measure.records import Record, Row, load_all
from tools.settings import LANGUAGES, ROOT
from tools.source import SourceError, as_source

MADE = "<!-- Made by tools/bench_page.py from data/benchmarks.toml and data/bench: run `make sync`. -->"
HEAD = {
    "zh": "# 与同类实现比速度\n\n"
    "同一份随机权重、同一串请求，各家在同一次运行里轮流做，预热不计，取中位数；有括号的，里面是最小值和最大值。"
    "✓ 是达到目标，✗ 是没达到。每张表都由 `python -m bench`（[bench](repo:bench)）测得，记在 `data/bench` 里；"
    "页上的数全部取自那些记录，没有一个是手写的。",
    "en": "# Benchmarks\n\n"
    "The same random weights and the same requests; all take turns in one run, the warm-up doesn't count, and what "
    "stands here is the median; brackets, where there are any, hold the least and the most. ✓ is a goal reached, ✗ one "
    "missed. Each table is what `python -m bench` ([bench](repo:bench)) measured and kept in `data/bench`; every "
    "number on this page comes from there, none is typed.",
}
NOT_YET = {"zh": "还没有在这里测过。", "en": "Not yet measured here."}
QUIET = {
    "zh": "测的时候别的进程占了 {} 个处理器（开始时平均负载 {}）：{}",
    "en": "Meanwhile other processes kept {} processors busy (load average {} at the start): {}",
}
VERDICT = {True: {"zh": "可信。", "en": "to be trusted."}, False: {"zh": "不可信。", "en": "not to be trusted."}}
MARKS = {True: "✓", False: "✗"}
GOALS = {"zh": "目标：{} 个里达到 {} 个。", "en": "Goals: of {}, {} reached."}
WORDS = {"zh": ("机器：", "没测：", "还差什么："), "en": ("Machine: ", "Left out: ", "What remains: ")}


@dataclass(frozen=True)
class Column:
    """A column: the field of the record that it shows, its heading, and how it is shown (see `cell`)."""

    field: str
    zh: str
    en: str
    show: str = "text"


@dataclass(frozen=True)
class Section:
    """A table of data/benchmarks.toml. Where `across` names a field, each of its values gets a column of its own."""

    name: str
    title: Mapping[str, str]
    what: Mapping[str, str]
    remains: Mapping[str, str]
    columns: Sequence[Column]
    across: str = ""


def read_sections(root: Path = ROOT) -> list[Section]:
    tables = tomllib.loads((root / "data/benchmarks.toml").read_text(encoding="utf-8"))["table"]
    return [Section(**{**table, "columns": [Column(**column) for column in table["columns"]]}) for table in tables]


def as_page(root: Path = ROOT) -> str:
    passages = [HEAD]
    for section in read_sections(root):
        records = load_all(section.name, root / "data/bench")
        passages.append({lang: _passage(section, records, lang) for lang in LANGUAGES})
    return as_source(MADE, passages)


def _passage(section: Section, records: Sequence[Record], lang: str) -> str:
    parts = [f"## {section.title[lang]}", section.what[lang]]
    for record in records:
        parts += [table(section, record, lang), notes(record, lang)]
    parts.append(WORDS[lang][2] + section.remains[lang] if records else NOT_YET[lang])
    return "\n\n".join(parts)


def table(section: Section, record: Record, lang: str) -> str:
    """Raises SourceError if the record lacks a column that the page shows: it is of an earlier benchmark."""
    shown = {column.field for column in section.columns}
    if lacking := sorted(shown - set(record.rows[0])):
        raise SourceError(f"data/bench: a {section.name} has no {lacking[0]!r}; run `python -m bench {section.name}`")
    columns = [column for column in section.columns if column.field != section.across]
    if not section.across:
        return _grid([_heading(columns, lang), *([cell(row, column) for column in columns] for row in record.rows)])
    settings = [column for column in columns if column.show == "text"]
    measured = [column for column in columns if column.show != "text"]
    names = list(dict.fromkeys(row[section.across] for row in record.rows))
    cases: dict[tuple[str, ...], dict[str, str]] = {}
    for row in record.rows:
        case = cases.setdefault(tuple(cell(row, column) for column in settings), {})
        case[row[section.across]] = "; ".join(text for column in measured if (text := cell(row, column)) != "–")
    body = [[*case, *(cells.get(name, "–") for name in names)] for case, cells in cases.items()]
    return _grid([[*_heading(settings, lang), *names], *body])


def _heading(columns: Sequence[Column], lang: str) -> list[str]:
    return [column.zh if lang == "zh" else column.en for column in columns]


def _grid(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def cell(row: Row, column: Column) -> str:
    """A field as text: "text" as it is, "number" and "MB" rounded, "spread" a median with its least and most, "goal" a
    ratio beside its goal, "at least" the rate that ours should reach."""
    value = row[column.field]
    if value is None:
        return "–"
    if column.show == "text":
        return str(value)
    if column.show == "MB":
        return number(value / 1e6)
    if column.show == "spread":
        least, most = (row[re.sub(r"(ms|per_s)$", rf"{what}_\1", column.field)] for what in ("min", "max"))
        return f"{number(value)} ({number(least)} – {number(most)})"
    if column.field not in goals(row):
        return number(value)
    reached = goals(row)[column.field]
    if column.show == "at least":
        return f"≥ {number(value)} {MARKS[reached]}"
    goal = number(row[column.field.replace("ratio", "goal")])
    return f"{number(value)} {'≤' if reached else '>'} {goal} {MARKS[reached]}"


def number(value: float) -> str:
    """Three digits that count, thousands apart."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def notes(record: Record, lang: str) -> str:
    """Where and how well it was measured, and what was left out."""
    where, (machine, left_out, _) = record.environment, WORDS[lang]
    on = (where["device"], f"{where['threads']} threads", f"PyTorch {where['torch']}", where["date"][:10])
    lines = [machine + f"`{', '.join(map(str, on))}`"]
    judged = [reached for row in record.rows for reached in goals(row).values()]
    if judged:
        lines.append(GOALS[lang].format(len(judged), sum(judged)))
    lines.append(quiet(where["busy_elsewhere"], where["load_average"], lang))
    lines += [f"{left_out}`{line}`" for line in record.parameters.get("left_out", ())]
    return "\n".join(f"- {line}" for line in lines)


def quiet(processors: float | None, load_average: float, lang: str) -> str:
    """What else the machine did, of which bench/neighbours.py kept count, and what it makes of it."""
    seen = "?" if processors is None else f"{processors:.2f}"
    return QUIET[lang].format(seen, f"{load_average:.1f}", VERDICT[is_quiet(processors)][lang])
