"""Static batching: a batch is collected, runs until its last request ends, and nobody joins meanwhile."""

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.request import Request
from lab.core.scheduler import WaitReason, _Step
from lab.policies.admission import Reserve
from lab.policies.prefill_first import PrefillFirst


class Static(PrefillFirst, Reserve):
    """What serving was before Orca (OSDI '22): the slots of those that ended early stay empty."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        super().__init__(config, cache)
        self._collecting = True

    def _fill(self, step: _Step) -> WaitReason | None:
        self._collecting = self._collecting or not self.running
        return super()._fill(step)

    def _why_wait(self, step: _Step, request: Request, n: int) -> WaitReason | None:
        return super()._why_wait(step, request, n) if self._collecting else WaitReason.POLICY

    def _decode(self, step: _Step) -> WaitReason | None:
        self._collecting = False  # no prompt could be added: the batch is as full as it gets
        return super()._decode(step)
