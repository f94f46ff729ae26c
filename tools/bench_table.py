"""A record of the benchmark as a Markdown table, by the columns that data/benchmarks.toml gives it."""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.table import goals
from lab.measure.records import Record, Row
from tools.source import SourceError

OURS = "ours"
NOTHING = "–"
MARKS = {True: "✓", False: "✗"}


@dataclass(frozen=True)
class Column:
    """A column: the field of the record that it shows, its heading, and how it is shown (see `cell`)."""

    field: str
    zh: str
    en: str
    show: str = "text"


@dataclass(frozen=True)
class Section:
    """A table of data/benchmarks.toml. `against` names the field that says beside whom ours is timed, if the ratio is
    our time to theirs; where `across` names a field, each of its values gets a column of its own."""

    name: str
    title: Mapping[str, str]
    what: Mapping[str, str]
    remains: Mapping[str, str]
    columns: Sequence[Column]
    against: str = ""
    across: str = ""


def table(section: Section, record: Record, lang: str) -> str:
    """Raises SourceError if the record lacks a column that the page shows: it is of an earlier benchmark."""
    shown = {column.field for column in section.columns}
    if lacking := sorted(shown - set(record.rows[0])):
        raise SourceError(f"data/bench: a {section.name} has no {lacking[0]!r}; run `python -m bench {section.name}`")
    columns = [column for column in section.columns if column.field != section.across]
    if not section.across:
        return grid([_heading(columns, lang), *([cell(row, column) for column in columns] for row in record.rows)])
    settings = [column for column in columns if column.show == "text"]
    measured = [column for column in columns if column.show != "text"]
    names = list(dict.fromkeys(row[section.across] for row in record.rows))
    names.sort(key=lambda name: not name.startswith(OURS))
    cases: dict[tuple[str, ...], dict[str, str]] = {}
    for row in record.rows:
        case = cases.setdefault(tuple(cell(row, column) for column in settings), {})
        told = [column for column in measured if row[section.across] != OURS or column.field != "ratio"]
        case[row[section.across]] = "; ".join(text for column in told if (text := cell(row, column)) != NOTHING)
    body = [[*case, *(cells.get(name, NOTHING) for name in names)] for case, cells in cases.items()]
    return grid([[*_heading(settings, lang), *names], *body])


def _heading(columns: Sequence[Column], lang: str) -> list[str]:
    return [column.zh if lang == "zh" else column.en for column in columns]


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Markdown's table of these cells, the first row its heading."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def cell(row: Row, column: Column) -> str:
    """A field as text: "text" as it is, "number" and "MB" rounded, "spread" a median with its least and most, "goal" a
    ratio beside its goal, "at least" the rate that ours should reach."""
    value = row[column.field]
    if value is None:
        return NOTHING
    if column.show == "text":
        return str(value)
    if column.show == "MB":
        return number(value / 1e6)
    if column.show == "spread":
        least, most = (row[re.sub(r"(ms|per_s)$", rf"{what}_\1", column.field)] for what in ("min", "max"))
        return f"{number(value)} ({number(least)} – {number(most)})"
    if column.field not in goals(row):
        return number(value)
    mark = MARKS[goals(row)[column.field]]
    if column.show == "at least":
        return f"≥ {number(value)} {mark}"
    goal = row[column.field.replace("ratio", "goal")]
    shown = number(value)
    if shown == number(goal) and value != goal:
        shown = number(value, 4)  # "1.1 > 1.1" says nothing
    return f"{shown} {'≤' if value <= goal else '>'} {number(goal)} {mark}"


def number(value: float, digits: int = 3) -> str:
    """So many digits that count, thousands apart."""
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.{digits}g}"


def middle(values: Sequence[float]) -> str:
    """The median of several values, with the least and the most where they differ; of none a dash."""
    if not values:
        return NOTHING
    median, least, most = map(number, (statistics.median(values), min(values), max(values)))
    return median if least == most else f"{median} ({least} – {most})"
