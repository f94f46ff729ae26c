"""A request: what was asked, what is known so far, and how much of it has been computed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from lab.core.errors import RequestRejected


class RequestState(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    PREEMPTED = "preempted"
    FINISHED = "finished"


class FinishReason(Enum):
    LENGTH = "length"
    STOP = "stop"
    ABORT = "abort"


@dataclass(frozen=True)
class SamplingParams:
    """How to choose the next token, and when to stop.

    `temperature` 0 is greedy. `seed` makes the tokens of a request repeatable whatever else is in the batch. Raises
    `RequestRejected` for a value out of range.
    """

    max_tokens: int = 16
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop_token_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name, kind in (("max_tokens", int), ("seed", int), ("temperature", (int, float)), ("top_p", (int, float))):
            if not isinstance(getattr(self, name), kind):
                raise RequestRejected(f"{name} is {getattr(self, name)!r}; it must be a number")
        object.__setattr__(self, "stop_token_ids", frozenset(self.stop_token_ids))  # any collection of ids will do
        if self.max_tokens < 1:
            raise RequestRejected(f"max_tokens is {self.max_tokens}; it must be at least 1")
        if not 0.0 <= self.temperature < float("inf"):
            raise RequestRejected(f"temperature is {self.temperature}; it must be 0 (greedy) or a positive number")
        if not 0.0 < self.top_p <= 1.0:
            raise RequestRejected(f"top_p is {self.top_p}; it must be above 0 and at most 1")
        if not 0 <= self.seed < 2**32:
            raise RequestRejected(f"seed is {self.seed}; it must be from 0 to {2**32 - 1}")


@dataclass(eq=False, slots=True)
class Request:
    """One request on its way through the scheduler.

    `prompt_token_ids` is any sequence of ids; a simulation that has lengths only passes `range(n)`. `arrival` orders
    requests of one priority, in whatever unit the clock of the run counts.
    """

    request_id: str
    prompt_token_ids: Sequence[int]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    priority: int = 0
    arrival: float = 0.0
    output_token_ids: list[int] = field(default_factory=list)
    num_computed_tokens: int = 0
    num_preemptions: int = 0
    state: RequestState = RequestState.WAITING
    finish_reason: FinishReason | None = None
    num_tokens: int = field(init=False)  # known so far: prompt and output

    def __post_init__(self) -> None:
        self.num_tokens = len(self.prompt_token_ids) + len(self.output_token_ids)

    def append_output(self, token: int) -> FinishReason | None:
        """Take the next token. Returns why the request is over with it, if it is."""
        output, sampling = self.output_token_ids, self.sampling
        output.append(token)
        self.num_tokens += 1
        if token in sampling.stop_token_ids:
            return FinishReason.STOP
        return FinishReason.LENGTH if len(output) >= sampling.max_tokens else None

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.prompt_token_ids)

    @property
    def num_uncomputed_tokens(self) -> int:
        """Known tokens whose KV has not been computed; when a step brings it to 0 that step yields a token."""
        return self.num_tokens - self.num_computed_tokens

    @property
    def max_kv_tokens(self) -> int:
        """KV slots at the end of the longest run: the last token is never fed, so its KV is never needed."""
        return self.num_prompt_tokens + self.sampling.max_tokens - 1

    def token_ids(self, start: int, stop: int) -> list[int]:
        """The known tokens `start` to `stop` (not included) of prompt and output together."""
        p = self.num_prompt_tokens
        return [*self.prompt_token_ids[start:stop], *self.output_token_ids[max(0, start - p) : max(0, stop - p)]]
