"""Is a file a trace that Perfetto opens as it was meant? By the Trace Event Format, as far as `events.py` uses it."""

import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.core.errors import ConfigError
from lab.perfetto.events import Event

KINDS = {"X": "slices", "i": "moments", "C": "counter values", "M": "names"}
NAMES = {"process_name": ("name", str), "thread_name": ("name", str), "thread_sort_index": ("sort_index", int)}
SCOPES = ("g", "p", "t")  # of a moment: a line across everything, its process or its track
LATEST = 2**63 // 1000  # microseconds: Perfetto counts nanoseconds in 64 bits
HIGHEST_ID = 2**32 - 1  # of a process or a track: Perfetto keeps 32 bits
Track = tuple[int, int]  # pid and tid


@dataclass(frozen=True)
class Contents:
    """What is in a valid trace: events by kind, tracks and counters, and from when to when, in microseconds."""

    kinds: dict[str, int]
    tracks: int
    counters: tuple[str, ...]
    start: float
    end: float


def read_trace(path: Path) -> Contents:
    """Raises ConfigError if the file can't be read or is no such trace."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except OSError as error:
        raise ConfigError(f"can't read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON: {error}") from None
    try:
        return validate(document)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def refuse(constant: str) -> None:
    raise ValueError(f"it holds {constant}, which only Python takes for a number")


def validate(document: Any) -> Contents:
    """Raises ConfigError that names the first event at fault, by its place in the list, and what is wrong with it."""
    events = document.get("traceEvents") if isinstance(document, dict) else None
    if not isinstance(events, list) or not events:
        raise ConfigError('a trace is an object with a list "traceEvents" that is not empty')
    named: set[Track] = set()
    slices: defaultdict[Track, list[tuple[int, int, int]]] = defaultdict(list)
    for index, event in enumerate(events):
        if fault := fault_of(event):
            raise ConfigError(f"event {index}: {fault}")
        if event["ph"] == "X":
            start = to_ns(event["ts"])
            slices[track_of(event)].append((start, -(start + to_ns(event["dur"])), index))
        elif event["ph"] == "M" and event["name"] == "thread_name":
            named.add(track_of(event))
    on_tracks = [(index, event) for index, event in enumerate(events) if event["ph"] in "Xi"]
    for index, event in on_tracks:
        if track_of(event) not in named:
            raise ConfigError(f"event {index}: track {event['tid']} of process {event['pid']} has no thread_name")
    for own in slices.values():
        require_nested(own)
    times = [event["ts"] for event in events if "ts" in event]
    ends = [event["ts"] + event.get("dur", 0) for event in events if "ts" in event]
    counters = dict.fromkeys(event["name"] for event in events if event["ph"] == "C")
    kinds = Counter(KINDS[event["ph"]] for event in events)
    return Contents(dict(kinds), len(named), tuple(counters), min(times, default=0.0), max(ends, default=0.0))


def fault_of(event: Any) -> str | None:
    """What is wrong with one event, by itself."""
    if not isinstance(event, dict) or event.get("ph") not in tuple(KINDS):  # it may be anything, a list too
        return f"it has no phase of {', '.join(KINDS)}"
    kind, args = event["ph"], event.get("args", {})
    if not isinstance(event.get("name"), str) or not isinstance(args, dict):
        return "its name must be a text and its args an object"
    numbered = ["pid"] if kind == "C" or event["name"] == "process_name" else ["pid", "tid"]
    if any(type(event.get(key)) is not int or not 0 <= event[key] <= HIGHEST_ID for key in numbered):
        return f"{' and '.join(numbered)} must be whole numbers from 0 to {HIGHEST_ID}"
    timed = {"M": [], "X": ["ts", "dur"]}.get(kind, ["ts"])
    if any(not is_time(event.get(key)) for key in timed):
        return f"{' and '.join(timed)} must be microseconds, from 0 to below {LATEST}"
    if kind == "C" and not (args and all(is_number(value) for value in args.values())):
        return "a counter needs numbers in its args"
    if kind == "i" and event.get("s", "t") not in SCOPES:
        return f"the scope of a moment must be one of {', '.join(SCOPES)}"
    if kind == "M" and event["name"] in NAMES:
        key, wanted = NAMES[event["name"]]
        if type(args.get(key)) is not wanted:
            return f"{event['name']} needs {key!r} in its args, of type {wanted.__name__}"
    return None


def require_nested(slices: list[tuple[int, int, int]]) -> None:
    """The slices of one track, as (start, -end, index): Perfetto would move those that overlap in part."""
    around: list[int] = []  # ends of the slices that this one lies in
    for start, minus_end, index in sorted(slices):
        while around and around[-1] <= start:
            around.pop()
        if around and -minus_end > around[-1]:
            raise ConfigError(f"event {index}: it begins within another slice of its track and ends after it")
        around.append(-minus_end)


def track_of(event: Event) -> Track:
    return event["pid"], event["tid"]


def to_ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_time(value: Any) -> bool:
    return is_number(value) and 0 <= value < LATEST
