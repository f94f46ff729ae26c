"""Other schedulers on the interface of `lab.core.Scheduler`, each a subclass that changes the rule it is named for."""

from lab.core.scheduler import Scheduler
from lab.policies.alternate import Alternate
from lab.policies.prefill_first import PrefillFirst

POLICIES: dict[str, type[Scheduler]] = {
    "vllm": Scheduler,
    "prefill-first": PrefillFirst,
    "alternate": Alternate,
}

__all__ = ["POLICIES", "Alternate", "PrefillFirst"]
