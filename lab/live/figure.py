"""What a figure is."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from lab.live.knobs import Knob, Values
from lab.live.words import Both, Lang

WIDE, NARROW = 680, 320  # of a drawing, in units that are a pixel where there is room for it
NEEDED = 560  # pixels from which on the wide one can be read


@dataclass(frozen=True)
class Shown:
    """One setting's picture (SVG) and what it says in words; `numbers` are the lab's own, ready for JSON.

    `rows` are the numbers that a reader compares, as (label, value); `notes` what there is to know about this run.
    """

    svg: str
    text: str
    rows: Sequence[tuple[str, str]]
    numbers: Mapping[str, Any]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """`show` draws a setting `WIDE` or `NARROW`; it raises LabError for one that the lab refuses."""

    name: str
    title: Both
    knobs: Sequence[Knob]
    show: Callable[[Values, Lang, int], Shown]


def plain(value: Any) -> Any:
    """Dataclasses and enums as what JSON knows; a number that is not finite is None."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
