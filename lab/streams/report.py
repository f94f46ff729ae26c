"""Several ways to write one program, side by side."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lab.streams.model import ModelRuntime
from lab.streams.programs import find
from lab.streams.runtime import Runtime
from lab.streams.trace import Trace
from lab.streams.verdict import Verdict, examine
from lab.streams.words import NAMES, Lang

ROW = "{:>14}  {:>5}  {:>5}  {:>6}  {:>9}  {:>7}  {:>8}  {:>4}  {}"
HEAD = ("", "value", "right", "copies", "bytes", "us", "blocked", "MiB", "hazards")


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
    """A line per run: value, copies within the device and their bytes, microseconds in all, of which the host stood
    still, MiB of device memory taken from the driver, and the kinds of the hazards."""
    lines = [ROW.format(*HEAD)]
    for run in runs:
        v, m = run.verdict, run.verdict.measures
        kinds = ", ".join(NAMES[kind][lang] for kind in dict.fromkeys(hazard.kind for hazard in v.hazards))
        times = (f"{m.makespan:.0f}", f"{m.host_blocked:.0f}", f"{(m.reserved_bytes or 0) / 2**20:.0f}")
        answer = (f"{v.value:g}", "yes" if v.right else "NO")
        lines.append(ROW.format(run.name, *answer, m.device_copies, f"{m.device_bytes:,}", *times, kinds or "-"))
    return "\n".join(lines)
