"""The events of Chrome's Trace Event Format that we write; their times are microseconds, of whole nanoseconds.

Perfetto counts in whole nanoseconds and wants the slices of a track one after the other or one inside the other.
Rounding the two ends of a slice, and not its length, keeps neighbours from running into each other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

SECOND, MICROSECOND = 10**9, 10**3  # in nanoseconds
Event = dict[str, Any]
Time = float | Fraction


@dataclass
class Process:
    """A group of tracks, and what happens on them. A track gets its number when something first happens on it.

    Times are told in `unit`, which is so many nanoseconds.
    """

    pid: int
    name: str
    unit: int
    events: list[Event] = field(default_factory=list)
    tracks: dict[str, int] = field(default_factory=dict)

    def slice(self, track: str, name: str, start: Time, end: Time, **args: Any) -> None:
        begin, stop = self._ns(start), self._ns(end)
        at = {"ts": begin / 1000, "dur": (stop - begin) / 1000}
        self.events.append({"ph": "X", "name": name, **self._place(track), **at, "args": args})

    def instant(self, track: str, name: str, at: Time, **args: Any) -> None:
        """A moment of one track."""
        place = self._place(track)
        self.events.append({"ph": "i", "s": "t", "name": name, **place, "ts": self._ns(at) / 1000, "args": args})

    def counter(self, name: str, at: Time, values: Mapping[str, int]) -> None:
        """A track of its own, with a line for each of the values, which hold until the next event of this name."""
        self.events.append({"ph": "C", "name": name, "pid": self.pid, "ts": self._ns(at) / 1000, "args": dict(values)})

    def names(self) -> Iterator[Event]:
        """What to call the process and its tracks, in the order of their first events."""
        yield {"ph": "M", "name": "process_name", "pid": self.pid, "args": {"name": self.name}}
        for track, tid in self.tracks.items():
            where = {"pid": self.pid, "tid": tid}
            yield {"ph": "M", "name": "thread_name", **where, "args": {"name": track}}
            yield {"ph": "M", "name": "thread_sort_index", **where, "args": {"sort_index": tid}}

    def _place(self, track: str) -> dict[str, int]:
        number = len(self.tracks) + 1
        if number >= self.pid:  # a thread with its process's number is Perfetto's main thread, which goes before others
            number += 1
        return {"pid": self.pid, "tid": self.tracks.setdefault(track, number)}

    def _ns(self, time: Time) -> int:
        return round(time * self.unit)


def document(*processes: Process) -> dict[str, Any]:
    events = [event for process in processes for event in (*process.names(), *process.events)]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
