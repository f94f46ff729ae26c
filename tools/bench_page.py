"""The page of benchmarks, as a bilingual source: data/benchmarks.toml says what each table is, data/bench what it gave.

Every number on the page comes from a record in data/bench/<device>; the words beside it, among them what remains where
we are behind, are typed and hold none.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.neighbours import is_quiet
from bench.table import goals
from lab.measure.records import Record, load_all
from tools.bench_table import NOTHING, OURS, Column, Section, grid, middle, table
from tools.settings import LANGUAGES, ROOT
from tools.source import as_source

Words = Mapping[str, str]  # by language

MADE = "<!-- Made by tools/bench_page.py from data/benchmarks.toml and data/bench: run `make sync`. -->"
STANDING = {
    "zh": ("表", "和谁比", "我们的时间 ÷ 它的时间", "达到的目标"),
    "en": ("table", "beside", "our time ÷ its time", "goals reached"),
}
NOT_YET = {"zh": "还没有在这里测过。", "en": "Not yet measured here."}
NO_GPU = {"zh": "还没有在 GPU 上测过。", "en": "Not yet measured on a GPU."}
MACHINE = {"zh": "机器：`{}`", "en": "Machine: `{}`"}
SETTINGS = {"zh": "设定：`{}`", "en": "Settings: `{}`"}
GOALS = {"zh": "目标：{} 个里达到 {} 个。", "en": "Goals: {1} of {0} reached."}
AGREES = {"zh": "别家的词元与我们相同的比例：{}。", "en": "Share of the others' tokens that equal ours: {}."}
QUIET = {"zh": "测的时候别的进程占了 {} 个处理器：{}", "en": "Meanwhile other processes kept {} processors busy: {}"}
VERDICT = {True: {"zh": "可信。", "en": "to be trusted."}, False: {"zh": "不可信。", "en": "not to be trusted."}}
LEFT_OUT = {"zh": "没测的，以及为什么", "en": "What was left out, and why"}
REMAINS = {"zh": "还差什么：", "en": "What remains: "}


def read_words(root: Path = ROOT) -> tuple[dict[str, Words], list[Section]]:
    """What stands above the tables, `head` and `stand`, and the tables."""
    data = tomllib.loads((root / "data/benchmarks.toml").read_text(encoding="utf-8"))
    tables = data.pop("table")
    return data, [Section(**{**row, "columns": [Column(**column) for column in row["columns"]]}) for row in tables]


def as_page(root: Path = ROOT) -> str:
    words, sections = read_words(root)
    measured = [(section, load_all(section.name, root / "data/bench")) for section in sections]
    passages = [{lang: _opening(words, measured, lang) for lang in LANGUAGES}]
    passages += [{lang: _passage(section, records, lang) for lang in LANGUAGES} for section, records in measured]
    return as_source(MADE, passages)


def _opening(words: Mapping[str, Words], measured: Sequence[tuple[Section, Sequence[Record]]], lang: str) -> str:
    parts, records = [words["head"][lang]], [(section, record) for section, found in measured for record in found]
    for device in dict.fromkeys(record.environment["device"] for _, record in records):
        here = [(section, record) for section, record in records if record.environment["device"] == device]
        standing = [row for section, record in here for row in stand(section, record, lang)]
        parts += [MACHINE[lang].format(device), grid([STANDING[lang], *standing])]
    if records:
        parts.append(words["stand"][lang])
    if not any(record.environment.get("cuda") for _, record in records):
        parts.append(NO_GPU[lang])
    return "\n\n".join(parts)


def stand(section: Section, record: Record, lang: str) -> list[list[str]]:
    """A row for each with whom ours is compared: the table, who it is, the ratios of all cases, the goals. One where
    the table compares ours with nobody, or not by time."""
    rows: dict[str, list[Any]] = {}
    for row in record.rows:
        if (peer := row.get(section.against)) != OURS:
            rows.setdefault(peer or NOTHING, []).append(row)
    found = []
    for peer, cases in rows.items():
        ratios = [row["ratio"] for row in cases if section.against and row["ratio"] is not None]
        judged = [reached for row in cases for reached in goals(row).values()]
        reached = f"{sum(judged)} / {len(judged)}" if judged else NOTHING
        if ratios or judged:
            found.append([f"[{section.title[lang]}](#{_anchor(section)})", peer, middle(ratios), reached])
    return found


def _anchor(section: Section) -> str:
    return section.title["en"].lower().replace(" ", "-")


def _passage(section: Section, records: Sequence[Record], lang: str) -> str:
    parts = [f"## {section.title[lang]}", section.what[lang]]
    for record in records:
        parts += [table(section, record, lang), notes(section, record, lang), *_left_out(record, lang)]
    parts.append(REMAINS[lang] + section.remains[lang] if records else NOT_YET[lang])
    return "\n\n".join(parts)


def notes(section: Section, record: Record, lang: str) -> str:
    """Where, how and how well it was measured."""
    where = record.environment
    who = (where["device"], where.get("instructions"))  # the second in records from 2026-11-30 on
    on = (*filter(None, who), f"{where['threads']} threads", f"PyTorch {where['torch']}", where["date"][:10])
    lines = [MACHINE[lang].format(", ".join(on))]
    if settings := [f"{name} {value}" for name, value in record.parameters.items() if name != "left_out"]:
        lines.append(SETTINGS[lang].format(", ".join(settings)))
    judged = [reached for row in record.rows for reached in goals(row).values()]
    if judged:
        lines.append(GOALS[lang].format(len(judged), sum(judged)))
    if section.across and "agrees" in record.units:
        lines.append(AGREES[lang].format(agreement(record)))
    lines.append(quiet(where["busy_elsewhere"], lang))
    return "\n".join(f"- {line}" for line in lines)


def agreement(record: Record) -> str:
    """By dtype, over the rows of the others."""
    shares: dict[str, list[float]] = {}
    for row in record.rows:
        if not row["engine"].startswith(OURS):
            shares.setdefault(row["dtype"], []).append(row["agrees"])
    return ", ".join(f"`{dtype}` {middle(values)}" for dtype, values in shares.items())


def quiet(processors: float | None, lang: str) -> str:
    """What else the machine did, of which bench/neighbours.py kept count, and what it makes of it."""
    seen = "?" if processors is None else f"{processors:.2f}"
    return QUIET[lang].format(seen, VERDICT[is_quiet(processors)][lang])


def _left_out(record: Record, lang: str) -> list[str]:
    lines = [f"- `{line}`" for line in record.parameters.get("left_out", ())]
    return [f"<details><summary>{LEFT_OUT[lang]}</summary>", "\n".join(lines), "</details>"] if lines else []
