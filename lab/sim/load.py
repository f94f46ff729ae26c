"""A load that can be run again and again, faster or slower: what a trial puts on a setting."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from lab.core.config import require_at_least
from lab.core.errors import ConfigError
from lab.core.request import Request, SamplingParams
from lab.sim.scenario import BadLoad, any_tokens, read_scenarios
from lab.sim.synthetic import SYNTHETIC
from lab.sim.traces import is_trace, read_trace

MAX_REQUESTS = 10**6  # all are held at once, and sent to every worker


@dataclass(frozen=True)
class Load:
    """Requests as (arrival in seconds, prompt tokens, output tokens), in order of arrival; made anew for each run."""

    shapes: tuple[tuple[float, int, int], ...]

    @classmethod
    def of(cls, requests: Iterable[Request]) -> "Load":
        """The load that these requests are; each is taken to get all its `max_tokens`."""
        return cls(tuple((r.arrival, r.num_prompt_tokens, r.sampling.max_tokens) for r in requests))

    @property
    def rate(self) -> float:
        """Requests per second between the first and the last. Raises ConfigError if there is no time between them."""
        span = self.shapes[-1][0] - self.shapes[0][0] if self.shapes else 0.0
        if span <= 0:
            raise ConfigError(
                f"the load is {len(self.shapes)} requests that all come at once, which is no rate; give it arrivals "
                "over some time"
            )
        return (len(self.shapes) - 1) / span

    @property
    def max_model_len(self) -> int:
        """Tokens of the longest request, prompt and output."""
        return max(prompt + output for _, prompt, output in self.shapes)

    def requests(self, speed: float = 1.0) -> Iterator[Request]:
        """The requests, in the same order, `speed` times as many per second."""
        for number, (arrival, prompt, output) in enumerate(self.shapes):
            yield Request(str(number), range(prompt), SamplingParams(output), arrival=arrival / speed)


def read_load(source: str, num_requests: int) -> Load:
    """The first `num_requests` of a trace file, of a file with one load in seconds, or of a name in `SYNTHETIC`.

    Raises LabError for a file that is none of these.
    """
    require_at_least("number of requests", num_requests, 1)
    load = Load.of(islice(_requests(source, num_requests), min(num_requests, MAX_REQUESTS + 1)))
    if not load.shapes:
        raise BadLoad(f"{source} holds no request; give a load with arrivals")
    if len(load.shapes) > MAX_REQUESTS:
        raise ConfigError(
            f"{source} has more than {MAX_REQUESTS:,} requests; ask for the first so many, with --requests"
        )
    return load


def _requests(source: str, num_requests: int) -> Iterator[Request]:
    if source in SYNTHETIC:
        return SYNTHETIC[source].requests(num_requests)
    path = Path(source)
    return _scenario(path) if path.suffix == ".jsonl" and not is_trace(path) else read_trace(path)


def _scenario(path: Path) -> Iterator[Request]:
    first, *others = read_scenarios(path)
    if others:
        raise BadLoad(f"{path} holds {1 + len(others)} loads, and one is needed; leave one in the file")
    if first.in_steps:
        raise BadLoad(f'{path} counts time in steps, which is no rate; give it "clock": "seconds"')
    return (arrival.request(any_tokens) for arrival in first.arrivals)
