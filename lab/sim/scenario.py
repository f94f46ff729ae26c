"""Loads in a file, and the limits to run them under.

One JSON object a line, as the golden runs of vLLM's scheduler have them, without their steps:

    {"config": {"num_blocks": 64, "block_size": 16, "max_num_seqs": 8, "max_num_batched_tokens": 512},
     "arrivals": [[0, "a", 100, 20, 0], [3, "b", 40, 5, 0]], "clock": "steps"}

An arrival is [time, id, prompt tokens, max_tokens, priority]; the priority may be left out. Times count steps, or
seconds where `clock` is "seconds". Names in `config` are those of `SchedulerConfig` and `CacheConfig`; only
`num_blocks` is needed. A trace of a real service has arrivals alone; `trace_scenario` adds the config.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lab.core.arrivals import Arrivals, OpenLoop
from lab.core.config import CacheConfig, SchedulerConfig, require_at_least
from lab.core.errors import LabError
from lab.core.request import Request, SamplingParams
from lab.sim.arrivals import ByStep
from lab.sim.lines import read_lines
from lab.sim.traces import MAX_TIME, MAX_TOKENS, read_trace

CACHE_FIELDS = {field.name for field in fields(CacheConfig)}
CONFIG_FIELDS = {field.name for field in fields(SchedulerConfig)} | CACHE_FIELDS
MAX_LINE_BYTES = 2**26  # of a load: a million requests and more
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
        name, time, priority = self.request_id, self.time, self.priority
        if not isinstance(name, str) or not name.isprintable():
            raise ValueError(f"the request id {name!r} is no string that can be printed")
        if type(time) not in (int, float) or not 0 <= time <= MAX_TIME:
            raise ValueError(f"request {name!r} arrives at {time!r}; it must be a number from 0 to {MAX_TIME:g}")
        for what, tokens in (("prompt tokens", self.num_prompt_tokens), ("max_tokens", self.max_tokens)):
            require_at_least(f"{what} of {name!r}", tokens, 1)
            if tokens > MAX_TOKENS:
                raise ValueError(f"{what} of {name!r} is {tokens}; it must be at most {MAX_TOKENS}")
        if type(priority) is not int:
            raise ValueError(f"priority of {name!r} is {priority!r}; it must be an integer")

    def request(self, make_prompt: MakePrompt) -> Request:
        prompt = make_prompt(self.request_id, self.num_prompt_tokens)
        return Request(self.request_id, prompt, SamplingParams(self.max_tokens), self.priority, self.time)


@dataclass(frozen=True)
class TraceArrivals:
    """Those of a trace file, read anew each time."""

    path: Path

    def __iter__(self) -> Iterator[Arrival]:
        for r in read_trace(self.path):
            yield Arrival(r.arrival, r.request_id, r.num_prompt_tokens, r.sampling.max_tokens)


@dataclass(frozen=True)
class Scenario:
    """What arrives when, in order, and the limits it is to be run under."""

    name: str
    config: SchedulerConfig
    cache: CacheConfig
    arrivals: Iterable[Arrival]
    in_steps: bool

    def make_arrivals(self, make_prompt: MakePrompt) -> Arrivals:
        """A source for one run."""
        requests = (arrival.request(make_prompt) for arrival in self.arrivals)
        return ByStep((request.arrival, request) for request in requests) if self.in_steps else OpenLoop(requests)


def read_scenarios(path: Path) -> Iterator[Scenario]:
    """All loads of a file, read line by line. Raises BadLoad."""
    empty = True
    for number, line in read_lines(path, MAX_LINE_BYTES, BadLoad):
        empty = False
        try:
            yield _parse(f"line {number}", json.loads(line))
        except (ArithmeticError, ValueError, RecursionError) as error:
            raise BadLoad(f"{path} line {number}: {error!s:.300}") from error
    if empty:
        raise BadLoad(f"{path} holds no load; give a file of loads, one JSON object a line")


def trace_scenario(path: Path, config: str) -> Scenario:
    """A trace file under a `config`, the JSON object of the format above. Raises BadLoad for a bad one."""
    try:
        return Scenario(path.name, *read_limits(json.loads(config)), TraceArrivals(path), in_steps=False)
    except (ValueError, RecursionError) as error:
        raise BadLoad(f"config {config!r:.80}: {error!s:.300}") from error


def _parse(name: str, raw: Any) -> Scenario:
    if not isinstance(raw, dict):
        raise ValueError('it is no JSON object; write {"config": {...}, "arrivals": [...]}')
    for key, kind, json_kind in (("config", dict, "object"), ("arrivals", list, "array")):
        if not isinstance(raw.get(key), kind):
            raise ValueError(f"{key!r} is {raw.get(key)!r:.40}; a load needs it, a JSON {json_kind}")
    config, cache = read_limits(raw["config"])
    clock = raw.get("clock", "steps")
    if clock not in ("steps", "seconds"):
        raise ValueError(f"clock is {clock!r}; it must be 'steps' or 'seconds'")
    name = str(raw.get("name", raw.get("seed", name)))
    if not name.isprintable():
        raise ValueError(f"the name {name!r} cannot be printed")
    return Scenario(name, config, cache, _arrivals(raw["arrivals"]), in_steps=clock == "steps")


def read_limits(raw: Any) -> tuple[SchedulerConfig, CacheConfig]:
    """What the `config` of the format above says. Raises ValueError, of which ConfigError is one, for a bad one."""
    if not isinstance(raw, dict):
        raise ValueError('it is no JSON object; write {"num_blocks": ...}')
    if unknown := raw.keys() - CONFIG_FIELDS:
        raise ValueError(f"config knows no {min(unknown)!r}; there is {', '.join(sorted(CONFIG_FIELDS))}")
    if "num_blocks" not in raw:
        raise ValueError("config has no num_blocks, the size of the KV pool")
    cache = {key: value for key, value in raw.items() if key in CACHE_FIELDS}
    limits = {key: value for key, value in raw.items() if key not in CACHE_FIELDS}
    return SchedulerConfig.with_defaults(**limits), CacheConfig(**cache)


def _arrivals(rows: list[Any]) -> tuple[Arrival, ...]:
    for row in rows:
        if not isinstance(row, list) or len(row) not in (4, 5):
            raise ValueError(f"{row!r:.80} is no arrival; write [time, id, prompt tokens, max_tokens, priority]")
    arrivals = tuple(Arrival(*row) for row in rows)
    name, times = Counter(arrival.request_id for arrival in arrivals).most_common(1)[0] if arrivals else ("", 1)
    if times > 1:
        raise ValueError(f"{times} requests are called {name!r}; give each an id of its own")
    return tuple(sorted(arrivals, key=lambda arrival: arrival.time))
