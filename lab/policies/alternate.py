"""A step of prompts and a step of decodes by turns: the stall is one chunk, and the prompt takes twice the steps."""

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.plan import PlanDraft, WaitReason
from lab.policies.prefill_first import PrefillFirst


class Alternate(PrefillFirst):
    """Prompts and decodes take turns; who has nothing to do passes."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        super().__init__(config, cache)
        self._turns = self._prefill, self._decode

    def _fill(self, step: PlanDraft) -> WaitReason | None:
        first, second = self._turns
        reason = first(step)
        if step.plan:
            self._turns = second, first
        else:
            reason = second(step) or reason
        return reason or WaitReason.POLICY
