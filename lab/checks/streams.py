"""The suite of chapter 3: twelve experiments on a GPU, a record each.

What must hold is a verdict in its rows: a broken program that gives the right answer is as much a failure as a mended
one that doesn't.
"""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from lab.checks import stream_costs, stream_overlap
from lab.measure.records import Record, Row
from lab.streams.catalogue import Variant
from lab.streams.programs import find
from lab.streams.verdict import examine
from lab.streams_torch.backends import run_on_cuda
from lab.streams_torch.cuda import STRETCH, CudaRuntime

REPEATS = 20
SANITIZED = (("raw", "broken", True), ("raw", "event", False), ("free_early", "broken", False))  # and what it reports

UNITS = {
    "value": "mean of the result", "right": "verdict", "match": "verdict", "device_copies": "copies",
    "device_bytes": "bytes", "error": "rule broken", "makespan_us": "us", "overlap": "of busy time",
    "speed_up": "times", "host_blocked_us": "us", "reserved_bytes": "bytes", "retained_bytes": "bytes",
    "right_runs": "runs", "reported": "verdict", "host_us": "us", "device_us": "us", "gb_per_s": "GB/s", "us": "us",
    "one_stream_us": "us", "two_streams_us": "us", "us_per_edge": "us", "kernels": "kernels",
    "allocations": "blocks", "shares_storage": "verdict",
}  # fmt: skip


@dataclass(frozen=True)
class StreamExperiment:
    """What makes one record; `run` takes its time on the device it is given."""

    name: str
    run: Callable[[torch.device], list[Row]]
    device: torch.device
    parameters: Mapping[str, Any]

    def record(self, environment: Mapping[str, Any]) -> Record:
        rows = self.run(self.device)
        units = {column: unit for column, unit in UNITS.items() if column in rows[0]}
        return Record(self.name, self.parameters, rows, environment, units)


def verdicts(*programs: str) -> Callable[[torch.device], list[Row]]:
    """Every variant of these programs, once, under the profiler."""

    def run(device: torch.device) -> list[Row]:
        return [verdict_row(name, variant) for name in programs for variant in find(name).variants]

    return run


def verdict_row(name: str, variant: Variant) -> Row:
    verdict, _ = run_on_cuda(find(name), variant)
    m = verdict.measures
    return {
        "program": name,
        "variant": variant.name,
        "want": variant.want,
        "value": verdict.value if verdict.value is not None and math.isfinite(verdict.value) else None,
        "right": verdict.right,
        "device_copies": m.device_copies,
        "device_bytes": m.device_bytes,
        "error": verdict.error,
        "makespan_us": m.makespan,
        "overlap": m.overlap,
        "speed_up": m.speed_up,
        "host_blocked_us": m.host_blocked,
        "reserved_bytes": m.reserved_bytes,
        "retained_bytes": m.retained_bytes,
        "match": verdict.agrees(variant),
    }


def missing_waits(device: torch.device) -> list[Row]:
    """Programs of ORDER again and again, without the profiler: wrong every time, or right every time."""
    rows: list[Row] = []
    for name in ("raw", "copy_no_help", "wait_before_record", "last_event", "step_later", "read_then_restore"):
        for variant in find(name).variants:
            runs = [examine(variant.run, variant.want, CudaRuntime(profile=False)).right for _ in range(REPEATS)]
            row = {"program": name, "variant": variant.name, "runs": REPEATS, "right_runs": sum(map(bool, runs))}
            rows.append({**row, "match": variant.right is None or set(runs) == {variant.right}})
    return rows


def sanitizer(device: torch.device) -> list[Row]:
    """PyTorch's CUDA sanitizer on a race, on its mended twin, and on memory used again, to which it is blind."""
    rows: list[Row] = []
    for name, variant, expected in SANITIZED:
        code = f"from lab.checks.streams import run_once; run_once({name!r}, {variant!r})"
        environment = os.environ | {"TORCH_CUDA_SANITIZER": "1"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        reported = done.returncode != 0 and "CSAN detected" in done.stderr
        row = {"program": name, "variant": variant, "reported": reported}
        rows.append({**row, "match": reported == expected and (reported or done.returncode == 0)})
    return rows


def run_once(name: str, variant: str) -> None:
    find(name).variant(variant).run(CudaRuntime(profile=False))


EXPERIMENTS: dict[str, Callable[[torch.device], list[Row]]] = {
    "e0-unit-costs": stream_costs.unit_costs,
    "e1-hand-off": verdicts("handoff", "war"),
    "e2-missing-wait": missing_waits,
    "e2-sanitizer": sanitizer,
    "e3-price-against-bytes": stream_costs.hand_off_costs,
    "e4-edge": stream_costs.edge_costs,
    "e5-overlap": stream_overlap.overlap_of_products,
    "e6-waiting-too-much": verdicts("wait_too_much", "host_sync_in_loop", "pipeline"),
    "e7-reuse": verdicts("free_early", "wait_or_record", "first_touch", "three_streams", "temporary"),
    "e8-growth": verdicts("growth", "side_pool"),
    "e9-host": verdicts("d2h_read", "staging_reuse", "pageable", "async_output"),
    "e10-graphs": verdicts("graph", "launch_bound"),
    "e11-hidden-copies": stream_overlap.hidden_copies,
}


def stream_experiment(name: str, device: torch.device) -> StreamExperiment:
    return StreamExperiment(f"streams-{name}", EXPERIMENTS[name], device, {"stretch": STRETCH, "repeats": REPEATS})
