"""Several ways to write one program, side by side."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lab.streams.model import ModelRuntime
from lab.streams.programs import find
from lab.streams.races import Hazard
from lab.streams.runtime import Runtime
from lab.streams.trace import Trace
from lab.streams.verdict import Verdict, examine
from lab.streams.words import Lang, explain, kinds_of

ROW = "{:>14} {:>6} {:>6} {:>11} {:>5} {:>8} {:>4}  {}"
HEAD = ("", "value", "right", "copied", "us", "blocked", "MiB", "hazards")
COLUMNS = 85  # of the page


@dataclass(frozen=True)
class Run:
    """A finished run of the model, with what came of it."""

    name: str
    verdict: Verdict
    trace: Trace


def run_all(programs: Mapping[str, Callable[[Runtime], float]], want: float) -> list[Run]:
    """Run each program on a fresh model; `want` is the value that is right."""
    runs = []
    for name, program in programs.items():
        rt = ModelRuntime()
        runs.append(Run(name, examine(program, want, rt), rt.trace))
    return runs


def run_variants(name: str, *variants: str) -> list[Run]:
    """The same for a program of the catalogue: all its variants, or those named. Raises ConfigError for no such one."""
    program = find(name)
    chosen = [program.variant(variant) for variant in variants] or program.variants
    return [run for variant in chosen for run in run_all({variant.name: variant.run}, variant.want)]


def as_table(runs: Iterable[Run], lang: Lang = "en") -> str:
    """A line per run: value, bytes copied within the device, microseconds in all, of which the host stood still, MiB of
    device memory taken from the driver, and the kinds of the hazards."""
    lines = [ROW.format(*HEAD)]
    for run in runs:
        v, m = run.verdict, run.verdict.measures
        answer = (f"{v.value:g}", "yes" if v.right else "NO", f"{m.device_bytes:,}")
        costs = (f"{m.makespan:.0f}", f"{m.host_blocked:.0f}", f"{(m.reserved_bytes or 0) / 2**20:.0f}")
        lines.append(ROW.format(run.name, *answer, *costs, kinds_of(v.hazards, lang) or "-"))
    return "\n".join(lines)


def explained(hazards: Iterable[Hazard], lang: Lang = "en") -> str:
    """A paragraph per hazard, in lines that fit the page; Chinese breaks behind its commas."""
    return "\n".join(wrap(explain(hazard, lang)) for hazard in hazards)


def wrap(text: str) -> str:
    lines = [""]
    for piece in re.findall(r"[^ ，；]+[ ，；]*", text):
        if columns(lines[-1] + piece.rstrip()) > COLUMNS:
            lines.append("  ")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
