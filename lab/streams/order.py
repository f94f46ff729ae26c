"""ORDER: which operation is known to have ended before which, as vector clocks.

An actor is a stream or the host. Its clock says for every actor how many of its operations have ended before whatever
the actor does next. CUDA's rules (Runtime API, event and stream management): a record takes what is queued on the
stream at that moment, a record made again replaces it, a wait means the record made last before the wait is enqueued,
and a wait for an event that was never recorded is none.
"""

from collections import defaultdict
from dataclasses import dataclass

from lab.streams.runtime import HOST, Event

Clock = dict[str, int]


def join(clock: Clock, other: Clock) -> None:
    """Let `clock` know what `other` knows."""
    for actor, n in other.items():
        clock[actor] = max(clock.get(actor, 0), n)


@dataclass(frozen=True)
class Stamp:
    """A place in an actor's order, behind its `n`-th operation: `clock` has all that has ended there."""

    actor: str
    n: int
    clock: Clock

    def before(self, other: "Stamp") -> bool:
        """Whether this has ended before `other` begins, in every execution."""
        return self.known_to(other.clock)

    def known_to(self, clock: Clock) -> bool:
        """Whether who knows `clock` knows all of this. For an operation its own number would tell; not for a place."""
        return all(clock.get(actor, 0) >= n for actor, n in self.clock.items())


class Order:
    """The clocks of all streams and of the host, who launches everything and so passes on what it knows."""

    def __init__(self) -> None:
        self.clocks: defaultdict[str, Clock] = defaultdict(dict)
        self.recorded: dict[Event, Clock] = {}

    def here(self, actor: str) -> Stamp:
        """What is behind the actor at this moment: a place in its order, not an operation."""
        clock = self.clocks[actor]
        join(clock, self.clocks[HOST])
        return Stamp(actor, clock.get(actor, 0), dict(clock))

    def step(self, actor: str) -> Stamp:
        """One more operation of the actor."""
        self.clocks[actor][actor] = self.clocks[actor].get(actor, 0) + 1
        return self.here(actor)

    def record(self, event: Event, stream: str) -> None:
        self.recorded[event] = self.here(stream).clock

    def wait(self, event: Event, stream: str) -> None:
        join(self.clocks[stream], self.recorded.get(event, {}))

    def synchronize_event(self, event: Event) -> None:
        self.wait(event, HOST)

    def synchronize_stream(self, stream: str) -> None:
        join(self.clocks[HOST], self.clocks[stream])

    def synchronize_device(self) -> None:
        for stream in list(self.clocks):
            self.synchronize_stream(stream)
