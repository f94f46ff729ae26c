"""Replay golden runs of vLLM's own scheduler and compare every field of every step.

A golden file has one workload a line: `config`, `arrivals` [step, id, prompt tokens, max_tokens, priority], and for
each step the `plan` in order, who was `preempted`, who `finished` (both sorted by id) and the `free_blocks` after it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.core import LabError, Scheduler
from lab.sim.lines import read_lines
from lab.sim.scenario import MAX_LINE_BYTES, Arrival, any_tokens, read_limits
from lab.sim.simulate import ANY_TOKEN


class BadGoldenFile(LabError, ValueError):
    """A golden file that is not in the format above."""


@dataclass(frozen=True)
class Mismatch:
    workload: str
    step: int
    field: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        return f"workload {self.workload} step {self.step} {self.field}: expected {self.expected}, got {self.actual}"


@dataclass(frozen=True)
class Conformance:
    """What a replay found: `mismatches` holds the first differing step of each workload that differs."""

    workloads: int
    steps: int
    preemptions: int
    mismatches: tuple[Mismatch, ...]


def conform(path: str | Path) -> Conformance:
    """Replay all workloads of a golden file. Raises `BadGoldenFile` for a file that is not one."""
    workloads = steps = preemptions = 0
    mismatches: list[Mismatch] = []
    for name, workload in read_workloads(Path(path)):
        try:
            mismatches += replay(name, workload)
            steps += len(workload["steps"])
            preemptions += sum(len(step["preempted"]) for step in workload["steps"])
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadGoldenFile(f"{path}: workload {name} is not in the golden format: {error!r}") from error
        workloads += 1
    if workloads == 0:
        raise BadGoldenFile(f"{path} holds no workload; give a .jsonl file of golden runs")
    return Conformance(workloads, steps, preemptions, tuple(mismatches))


def read_workloads(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and content of each line; the name is its seed, or its line number."""
    for number, line in read_lines(path, MAX_LINE_BYTES, BadGoldenFile):
        try:
            workload = json.loads(line)
        except (RecursionError, ValueError) as error:
            raise BadGoldenFile(f"{path} line {number} is not JSON: {error}") from error
        if not isinstance(workload, dict):
            raise BadGoldenFile(f"{path} line {number} is not a JSON object")
        yield str(workload.get("seed", f"line {number}")), workload


def replay(name: str, workload: dict[str, Any]) -> list[Mismatch]:
    """Run one workload; the mismatches of the first step that differs, since all later ones follow from it."""
    scheduler = Scheduler(*read_limits(workload["config"]))
    arrivals = [Arrival(*row) for row in workload["arrivals"]]
    for index, expected in enumerate(workload["steps"]):
        while arrivals and arrivals[0].time <= index:
            scheduler.submit(arrivals.pop(0).request(any_tokens))
        actual = run_step(scheduler)
        mismatches = [
            Mismatch(name, index, field, expected[field], value)
            for field, value in actual.items()
            if expected[field] != value
        ]
        if mismatches:
            return mismatches
    return []


def run_step(scheduler: Scheduler) -> dict[str, Any]:
    """One step with a model that always says `ANY_TOKEN`, in the fields of the golden format."""
    plan = scheduler.schedule()
    finished = scheduler.update(plan, dict.fromkeys(plan.num_tokens, ANY_TOKEN))
    return {
        "plan": [list(item) for item in plan.num_tokens.items()],
        "preempted": sorted(plan.preempted),
        "finished": sorted(request.request_id for request in finished),
        "free_blocks": scheduler.pool.num_free,
    }
