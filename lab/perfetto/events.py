"""The events of Chrome's Trace Event Format that we write; times in nanoseconds, whole ones.

Perfetto counts in whole nanoseconds and wants the slices of a track one after the other or one inside the other.
Rounding the two ends of a slice, and not its length, keeps neighbours from running into each other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


@dataclass
class Process:
    """A group of tracks. A track gets its number, and its name in the trace, when something first happens on it."""

    pid: int
    name: str
    tracks: dict[str, int] = field(default_factory=dict)

    def slice(self, track: str, name: str, start: int, end: int, **args: Any) -> Event:
        at = {"ts": start / 1000, "dur": (end - start) / 1000}
        return {"ph": "X", "name": name, "pid": self.pid, "tid": self._tid(track), **at, "args": args}

    def instant(self, track: str, name: str, at: int, **args: Any) -> Event:
        """A moment of one track."""
        where = {"pid": self.pid, "tid": self._tid(track)}
        return {"ph": "i", "s": "t", "name": name, **where, "ts": at / 1000, "args": args}

    def counter(self, name: str, at: int, values: Mapping[str, int]) -> Event:
        """A track of its own, with a line for each of the values, which hold until the next event of this name."""
        return {"ph": "C", "name": name, "pid": self.pid, "ts": at / 1000, "args": dict(values)}

    def names(self) -> Iterator[Event]:
        """What to call the process and its tracks, in the order of their first events."""
        yield {"ph": "M", "name": "process_name", "pid": self.pid, "args": {"name": self.name}}
        for track, tid in self.tracks.items():
            where = {"pid": self.pid, "tid": tid}
            yield {"ph": "M", "name": "thread_name", **where, "args": {"name": track}}
            yield {"ph": "M", "name": "thread_sort_index", **where, "args": {"sort_index": tid}}

    def _tid(self, track: str) -> int:
        return self.tracks.setdefault(track, len(self.tracks) + 1)


def document(*parts: tuple[Process, list[Event]]) -> dict[str, Any]:
    events = [event for process, own in parts for event in (*process.names(), *own)]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
