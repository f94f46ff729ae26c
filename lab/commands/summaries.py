"""A run's summary as commands print it: a JSON document, and the same as a table."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab.sim.samples import Distribution
    from lab.sim.summary import Summary


def as_document(summary: "Summary") -> dict[str, Any]:
    """The summary in the units of its names: latencies and the longest gap in ms."""
    latencies = ("ttft", "itl", "tpot", "e2e", "queue")
    left_out = (*latencies, "longest_gap", "duration", "goodput", "waiting_reasons")
    return {
        **{name: value for name, value in vars(summary).items() if name not in left_out},
        "duration_s": summary.duration,
        "longest_gap_ms": summary.longest_gap * 1e3,
        **{f"{name}_ms": in_ms(getattr(summary, name)) for name in latencies},
        "waiting_reasons": {reason.value: count for reason, count in summary.waiting_reasons.items()},
    }


def in_ms(distribution: "Distribution") -> dict[str, Any]:
    """None in place of NaN, which is no JSON; `p99_is_max` says that there are too few samples for a p99."""
    values = asdict(distribution)
    n = values.pop("n")
    ms = {name: None if math.isnan(seconds) else seconds * 1e3 for name, seconds in values.items()}
    return {"n": n, **ms, "p99_is_max": distribution.p99_is_max}


def print_table(document: dict[str, Any]) -> None:
    for name, value in document.items():
        if isinstance(value, dict):
            value = "  ".join(f"{key} {show(item)}" for key, item in value.items())
        print(f"{name:>20}  {show(value)}")


def show(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
