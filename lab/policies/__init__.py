"""Other schedulers on the interface of `lab.core.Scheduler`, each a subclass that changes the rule it is named for.

`_fill` says who is computed together, `_why_wait` who is admitted, `waiting` in which order, `_evict` what becomes of
the preempted. Limits, blocks, the plan and the counting stay the base class's.
"""

from lab.core.errors import ConfigError
from lab.core.scheduler import Scheduler
from lab.policies.admission import Peak, Reserve
from lab.policies.alternate import Alternate
from lab.policies.forecast import ForecastRatio
from lab.policies.look_ahead import LookAhead
from lab.policies.prefill_first import PrefillFirst
from lab.policies.settings import FirstChunk, Priority
from lab.policies.shortest_first import ShortestFirst
from lab.policies.static import Static
from lab.policies.swap import Swap

POLICIES: dict[str, type[Scheduler]] = {
    "vllm": Scheduler,
    "priority": Priority,
    "first-chunk": FirstChunk,
    "reserve": Reserve,
    "sglang": ForecastRatio,
    "lightllm": Peak,
    "look-ahead": LookAhead,
    "static": Static,
    "prefill-first": PrefillFirst,
    "alternate": Alternate,
    "shortest-first": ShortestFirst,
    "swap": Swap,
}


def find_policy(name: str) -> type[Scheduler]:
    """Raises ConfigError for a name that is not in `POLICIES`."""
    if name not in POLICIES:
        raise ConfigError(f"policy {name!r} is unknown; it must be one of {', '.join(POLICIES)}")
    return POLICIES[name]


__all__ = [
    "POLICIES",
    "Alternate",
    "FirstChunk",
    "ForecastRatio",
    "LookAhead",
    "Peak",
    "PrefillFirst",
    "Priority",
    "Reserve",
    "ShortestFirst",
    "Static",
    "Swap",
    "find_policy",
]
