"""Loads in a file: one JSON object a line, as the golden runs of vLLM's scheduler have them, without their steps.

    {"config": {"num_blocks": 64, "block_size": 16, "max_num_seqs": 8, "max_num_batched_tokens": 512},
     "arrivals": [[0, "a", 100, 20, 0], [3, "b", 40, 5, 0]], "clock": "steps"}

An arrival is [time, id, prompt tokens, max_tokens, priority]; the priority may be left out. Times count steps, or
seconds where `clock` is "seconds". Names in `config` are those of `SchedulerConfig` and `CacheConfig`; only
`num_blocks` is needed.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lab.core.arrivals import Arrivals, OpenLoop
from lab.core.config import CacheConfig, SchedulerConfig, require_at_least
from lab.core.errors import LabError
from lab.core.request import Request, SamplingParams
from lab.sim.arrivals import ByStep
from lab.sim.lines import read_lines

CACHE_FIELDS = {field.name for field in fields(CacheConfig)}
CONFIG_FIELDS = {field.name for field in fields(SchedulerConfig)} | CACHE_FIELDS
MAX_LINE_BYTES = 2**26  # of a load: a million requests and more
MAX_TIME = 1e9  # 30 years of seconds, which a float still tells apart by less than a microsecond
MAX_TOKENS = 2**40  # a length beyond any pool, and so refused, but still one that Python can count
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


def _parse(name: str, raw: Any) -> Scenario:
    if not isinstance(raw, dict):
        raise ValueError('it is no JSON object; write {"config": {...}, "arrivals": [...]}')
    for key, kind, json_kind in (("config", dict, "object"), ("arrivals", list, "array")):
        if not isinstance(raw.get(key), kind):
            raise ValueError(f"{key!r} is {raw.get(key)!r:.40}; a load needs it, a JSON {json_kind}")
    config = dict(raw["config"])
    if unknown := config.keys() - CONFIG_FIELDS:
        raise ValueError(f"config knows no {min(unknown)!r}; there is {', '.join(sorted(CONFIG_FIELDS))}")
    cache = {key: config.pop(key) for key in CACHE_FIELDS & config.keys()}
    if "num_blocks" not in cache:
        raise ValueError("config has no num_blocks, the size of the KV pool")
    clock = raw.get("clock", "steps")
    if clock not in ("steps", "seconds"):
        raise ValueError(f"clock is {clock!r}; it must be 'steps' or 'seconds'")
    name = str(raw.get("name", raw.get("seed", name)))
    if not name.isprintable():
        raise ValueError(f"the name {name!r} cannot be printed")
    return Scenario(
        name=name,
        config=SchedulerConfig.with_defaults(**config),
        cache=CacheConfig(**cache),
        arrivals=_arrivals(raw["arrivals"]),
        in_steps=clock == "steps",
    )


def _arrivals(rows: list[Any]) -> tuple[Arrival, ...]:
    for row in rows:
        if not isinstance(row, list) or len(row) not in (4, 5):
            raise ValueError(f"{row!r:.80} is no arrival; write [time, id, prompt tokens, max_tokens, priority]")
    arrivals = tuple(Arrival(*row) for row in rows)
    name, times = Counter(arrival.request_id for arrival in arrivals).most_common(1)[0] if arrivals else ("", 1)
    if times > 1:
        raise ValueError(f"{times} requests are called {name!r}; give each an id of its own")
    return arrivals
