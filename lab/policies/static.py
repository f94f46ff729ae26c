"""Static batching: a batch is collected, runs until its last request ends, and nobody joins meanwhile."""

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.plan import PlanDraft, WaitReason
from lab.core.request import Request
from lab.policies.admission import Reserve
from lab.policies.prefill_first import PrefillFirst


class Static(PrefillFirst, Reserve):
    """What serving was before Orca (OSDI '22): the slots of those that ended early stay empty."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        super().__init__(config, cache)
        self._collecting = True

    def _fill(self, step: PlanDraft) -> WaitReason | None:
        self._collecting = self._collecting or not self.running
        return super()._fill(step)

    def _why_wait(self, step: PlanDraft, request: Request, n: int) -> WaitReason | None:
        return super()._why_wait(step, request, n) if self._collecting else WaitReason.POLICY

    def _decode(self, step: PlanDraft) -> WaitReason | None:
        self._collecting = False  # no prompt could be added: the batch is as full as it gets
        return super()._decode(step)
