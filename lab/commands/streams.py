"""`lab streams`: run a program of the catalogue, and say what came of it."""

import argparse
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.commands.common import Subparsers, add_trace_argument, print_json, require_place, write_json, write_text
from lab.core.errors import ConfigError

if TYPE_CHECKING:
    from lab.streams.catalogue import Program, Variant
    from lab.streams.trace import Trace, Work
    from lab.streams.verdict import Verdict

    Run = tuple[Variant, Verdict, Trace | list[Work]]  # CUDA leaves what its profiler saw

ROW = "{:>16}  {:>6}  {:>6}  {:>5}  {:>6}  {:>9}  {:>8}  {:>8}  {:>7}  {:>8}  {:>8}  {:>8}"
HEAD = (
    "variant", "value", "wanted", "right", "d2d", "d2d bytes", "us", "speed-up", "overlap", "blocked", "reserved",
    "retained",
)  # fmt: skip


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("streams", help="programs on two streams: what is broken, and what mends it")
    parser.add_argument("program", nargs="?", help="which program; without it, all are listed")
    parser.add_argument("--variant", help="only this way to write it")
    backends = ["model", "threads", "cuda"]
    parser.add_argument("--backend", choices=backends, default="model", help="what it runs on (model)")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw the lanes of every variant that ran")
    add_trace_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.perfetto.streams import streams_document
    from lab.show.language import tr
    from lab.streams.programs import PROGRAMS, find

    if args.program is None:
        if args.variant or args.picture or args.trace:
            raise ConfigError("--variant, --picture and --trace need a program: `python -m lab streams` lists them")
        for program in PROGRAMS.values():
            names = ", ".join(variant.name for variant in program.variants)
            print(f"{program.name:>20}  {tr(zh=program.zh, en=program.en)}\n{'':>20}  {names}")
        if args.json:
            print_json({name: [variant.name for variant in p.variants] for name, p in PROGRAMS.items()})
        return 0
    program = find(args.program)
    if args.picture and args.backend == "cuda":
        raise ConfigError(
            "--picture draws host and memory too, which CUDA doesn't tell: take --trace, or another backend"
        )
    require_place(args.trace)
    runs = list(run_variants(program, args.variant, args.backend))
    print_runs(program, runs)
    if args.picture:
        write_picture(args.picture, program, runs)
    if args.trace:
        write_json(args.trace, streams_document(named(program, runs)))
    if args.json:
        print_json({"program": program.name, "backend": args.backend, "variants": [as_json(*run) for run in runs]})
    return int(not all(verdict.agrees(variant) for variant, verdict, _ in runs))


def run_variants(program: "Program", name: str | None, backend: str) -> Iterator["Run"]:
    from lab.streams.model import ModelRuntime
    from lab.streams.verdict import examine

    for variant in [program.variant(name)] if name else program.variants:
        if backend == "model":
            runtime = ModelRuntime()
            yield variant, examine(variant.run, variant.want, runtime), runtime.trace
        else:
            from lab.streams_torch.backends import BACKENDS

            yield variant, *BACKENDS[backend](program, variant)


def print_runs(program: "Program", runs: list["Run"]) -> None:
    from lab.show.language import language, tr
    from lab.streams.words import explain

    print(f"{program.name}: {tr(zh=program.zh, en=program.en)}" + (f" ({program.source})" if program.source else ""))
    print(ROW.format(*HEAD))
    for variant, verdict, _ in runs:
        m = verdict.measures
        times = (cell(m.makespan, ".0f"), cell(m.speed_up, ".2f"), cell(m.overlap, ".2f"), cell(m.host_blocked, ".0f"))
        memory = (cell(m.reserved_bytes, "d"), cell(m.retained_bytes, "d"))
        values = (cell(verdict.value, "g"), f"{variant.want:g}", "yes" if verdict.right else "NO")
        print(ROW.format(variant.name, *values, m.device_copies, m.device_bytes, *times, *memory))
    for variant, verdict, _ in runs:
        for hazard in verdict.hazards:
            print(f"{variant.name}: {explain(hazard, language())}")
        if verdict.error:
            print(f"{variant.name}: capture refused: {verdict.error}")
        if not verdict.agrees(variant):
            print(
                f"{variant.name}: NOT what the catalogue expects: {', '.join(sorted(variant.hazards)) or 'no hazard'}"
            )


def cell(value: float | None, spec: str) -> str:
    return "-" if value is None else format(value, spec)


def named(program: "Program", runs: list["Run"]) -> list[tuple[str, "Trace | list[Work]"]]:
    return [(f"{program.name}: {variant.name}", times) for variant, _, times in runs]


def write_picture(path: Path, program: "Program", runs: list["Run"]) -> None:
    from lab.show.language import language
    from lab.streams.picture import draw
    from lab.streams.svg import stand_alone
    from lab.streams.trace import Trace

    traces = [(name, times) for name, times in named(program, runs) if isinstance(times, Trace)]
    write_text(path, stand_alone(draw(traces, language())))
    print(f"drew {path}")


def as_json(variant: "Variant", verdict: "Verdict", times: "Trace | list[Work]") -> dict[str, Any]:
    from lab.streams.trace import Trace
    from lab.streams.words import explain

    path = [launched.kernel.label for launched in times.critical_path()] if isinstance(times, Trace) else None
    value = verdict.value if verdict.value is not None and math.isfinite(verdict.value) else None
    hazards = [
        {
            "kind": hazard.kind,
            "first": {"label": hazard.first.label, "stream": hazard.first.stream, "line": hazard.first.line.number},
            "second": {"label": hazard.second.label, "stream": hazard.second.stream, "line": hazard.second.line.number},
            "text": explain(hazard),
        }
        for hazard in verdict.hazards
    ]
    return {
        "variant": variant.name,
        "value": value,
        "want": variant.want,
        "right": verdict.right,
        "hazards": hazards,
        "error": verdict.error,
        **asdict(verdict.measures),
        "speed_up": verdict.measures.speed_up,
        "critical_path": path,
        "as_expected": verdict.agrees(variant),
    }
