"""Loads in a file: one JSON object a line, as the golden runs of vLLM's scheduler have them, without their steps.

    {"config": {"num_blocks": 64, "block_size": 16, "max_num_seqs": 8, "max_num_batched_tokens": 512},
     "arrivals": [[0, "a", 100, 20, 0], [3, "b", 40, 5, 0]], "clock": "steps"}

An arrival is [time, id, prompt tokens, max_tokens, priority]; the priority may be left out. Times count steps, or
seconds where `clock` is "seconds". Names in `config` are those of `SchedulerConfig` and `CacheConfig`; only
`num_blocks` is needed.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lab.core.arrivals import Arrivals, OpenLoop
from lab.core.config import CacheConfig, SchedulerConfig, require_at_least
from lab.core.errors import LabError
from lab.core.request import Request, SamplingParams
from lab.sim.arrivals import ByStep

CACHE_FIELDS = {field.name for field in fields(CacheConfig)}
MakePrompt = Callable[[str, int], Sequence[int]]  # the tokens of a prompt, from the request's id and their number


def any_tokens(request_id: str, num_tokens: int) -> range:
    """A prompt for who looks at its length alone, as a scheduler does."""
    return range(num_tokens)


class BadLoad(LabError, ValueError):
    """A load file that is not in the format above; the message names file, line and reason."""


@dataclass(frozen=True)
class Arrival:
    time: float
    request_id: str
    num_prompt_tokens: int
    max_tokens: int
    priority: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.time, int | float) or not math.isfinite(self.time):
            raise ValueError(f"request {self.request_id!r} arrives at {self.time!r}; it must be a number")
        if not isinstance(self.request_id, str):
            raise ValueError(f"the request id {self.request_id!r} is no string")
        require_at_least(f"prompt tokens of {self.request_id!r}", self.num_prompt_tokens, 1)
        require_at_least(f"max_tokens of {self.request_id!r}", self.max_tokens, 1)
        if not isinstance(self.priority, int):
            raise ValueError(f"priority of {self.request_id!r} is {self.priority!r}; it must be an integer")

    def request(self, make_prompt: MakePrompt) -> Request:
        prompt = make_prompt(self.request_id, self.num_prompt_tokens)
        return Request(self.request_id, prompt, SamplingParams(self.max_tokens), self.priority, self.time)


@dataclass(frozen=True)
class Scenario:
    """What arrives when, and the limits it is to be run under."""

    name: str
    config: SchedulerConfig
    cache: CacheConfig
    arrivals: tuple[Arrival, ...]
    in_steps: bool

    def make_arrivals(self, make_prompt: MakePrompt) -> Arrivals:
        """A source for one run; arrivals may stand in any order."""
        ordered = sorted(self.arrivals, key=lambda arrival: arrival.time)
        requests = (arrival.request(make_prompt) for arrival in ordered)
        return ByStep((request.arrival, request) for request in requests) if self.in_steps else OpenLoop(requests)


def read_scenarios(path: Path) -> Iterator[Scenario]:
    """All loads of a file. Raises BadLoad."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadLoad(f"cannot read {path}: {error}; give a file of loads, one JSON object a line") from error
    if not any(line.strip() for line in lines):
        raise BadLoad(f"{path} holds no load; give a file of loads, one JSON object a line")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _parse(f"line {number}", json.loads(line))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
                raise BadLoad(f"{path} line {number}: {error!s:.300}") from error


def _parse(name: str, raw: dict[str, Any]) -> Scenario:
    config = dict(raw["config"])
    cache = {key: config.pop(key) for key in CACHE_FIELDS & config.keys()}
    if "num_blocks" not in cache:
        raise ValueError("config has no num_blocks, the size of the KV pool")
    clock = raw.get("clock", "steps")
    if clock not in ("steps", "seconds"):
        raise ValueError(f"clock is {clock!r}; it must be 'steps' or 'seconds'")
    return Scenario(
        name=str(raw.get("name", raw.get("seed", name))),
        config=SchedulerConfig.with_defaults(**config),
        cache=CacheConfig(**cache),
        arrivals=tuple(Arrival(*row) for row in raw["arrivals"]),
        in_steps=clock == "steps",
    )
