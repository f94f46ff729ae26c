"""Run a program, and say what came of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from lab.streams.catalogue import Variant
from lab.streams.model import ModelRuntime
from lab.streams.races import Hazard, Kind
from lab.streams.runtime import CaptureError, Measures, Runtime


@dataclass(frozen=True)
class Verdict:
    """`value` and `right` are of this one execution; the hazards are those of any, and empty where a backend is blind.

    `right` is None if nothing was wanted, and `error` the rule of graph capture that ended the run.
    """

    value: float | None
    right: bool | None
    hazards: tuple[Hazard, ...]
    measures: Measures
    error: str | None = None

    @property
    def kinds(self) -> frozenset[Kind]:
        return frozenset(hazard.kind for hazard in self.hazards)

    def agrees(self, variant: Variant) -> bool:
        """Whether this is what the catalogue expects of the variant."""
        copies = (variant.device_copies, variant.device_bytes)
        return (
            self.kinds == variant.hazards
            and (variant.right is None or self.right == variant.right)
            and self.error == variant.error
            and (self.measures.device_copies, self.measures.device_bytes) == copies
        )


def examine(
    run: Callable[[Runtime], float | None], want: float | None = None, runtime: Runtime | None = None
) -> Verdict:
    """Run a program on a fresh runtime, the model if none is given, and compare what it returns with `want`."""
    rt = runtime or ModelRuntime()
    error = None
    value: float | None = None
    try:
        value = run(rt)
    except CaptureError as refused:
        error = refused.rule
    right = None if want is None else value is not None and math.isclose(value, want)
    return Verdict(value, right, tuple(rt.hazards()), rt.measures(), error)
