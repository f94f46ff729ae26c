"""What the benchmark asks of an engine, so that all are asked the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from bench.table import Skipped
from lab.measure.timing import CPU_CLOCKS
from lab.model.device import Timer, synchronize

MAX_TOKENS = 1024  # of a request in a decode: more than any decode asks for

Tokens = list[list[int]]  # of each prompt
T = TypeVar("T")


@dataclass(frozen=True)
class Sample:
    """One call: how long it took, and the tokens it chose, which show that all did the same work."""

    ms: float
    tokens: Tokens


@dataclass(frozen=True)
class Meeting:
    """A long prompt that came while others were being answered."""

    ttft_ms: float  # from its arrival to its first token
    gap_ms: float  # the longest step until then: so long the others waited for a token
    tokens: Tokens  # the long prompt's first token


class Refused(Skipped):
    """What an engine can't do, or can't any more, in one line."""


class Player(Protocol):
    """An engine with the benchmark's model in it. `budget` is the most tokens a step may have.

    Each raises Refused for what it can't do.
    """

    name: str  # with its version

    def prefill(self, prompt: list[int], budget: int) -> Sample:
        """The first token of a prompt, nothing of which is cached."""
        ...

    def decode(self, prompts: Tokens, new_tokens: int) -> Sample:
        """The next tokens of all prompts as one batch. Called again with the same prompts it goes on where it stopped:
        the warm-up call computes the prompts, and the context grows alike for all."""
        ...

    def meet(self, prompts: Tokens, prompt: list[int], budget: int) -> Meeting:
        """`prompts` are being answered when `prompt` arrives."""
        ...


@dataclass(frozen=True)
class Stopwatch:
    """The clock of one engine: processor time or wall time on the CPU, events on a GPU."""

    device: torch.device
    clock: str

    def time(self, work: Callable[[], T]) -> tuple[float, T]:
        """Milliseconds of the work to its end on the device, and its result."""
        timer = Timer(self.device, CPU_CLOCKS[self.clock])
        synchronize(self.device)  # what was launched before is not its
        timer.start()
        result = work()
        timer.stop()
        synchronize(self.device)
        return timer.elapsed_ms(), result


def met(steps: Sequence[float], token: int) -> Meeting:
    """The meeting that took these steps, in milliseconds, from the arrival on."""
    return Meeting(sum(steps), max(steps), [[token]])
