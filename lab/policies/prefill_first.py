"""Prompts in chunks, but never beside decodes: what nano-vllm and mini-sglang do, and the mistake of chapter 1.

While any prompt can be computed, a step computes prompts alone, and whoever decodes waits. A long prompt then stalls
the decodes for as long as in one piece: chunks bound the memory of a step, but only mixing bounds the stall.
"""

from lab.core.plan import PlanDraft, WaitReason
from lab.core.request import Request
from lab.core.scheduler import Scheduler


def decodes(request: Request) -> bool:
    """Whether all that the request lacks is its newest token's KV."""
    return bool(request.output_token_ids) and request.num_uncomputed_tokens == 1


class PrefillFirst(Scheduler):
    """A step of prompts if there is one to be had, else a step of decodes."""

    def _fill(self, step: PlanDraft) -> WaitReason | None:
        reason = self._prefill(step)
        if not step.plan:
            reason = self._decode(step) or reason
        return reason

    def _prefill(self, step: PlanDraft) -> WaitReason | None:
        self._schedule_running(step, [r for r in self.running if not decodes(r)])
        return self._admit_waiting(step)

    def _decode(self, step: PlanDraft) -> WaitReason | None:
        """Decodes alone: the queue is not looked at, only its new head after a preemption has its reason."""
        self._schedule_running(step, [r for r in self.running if decodes(r)])
        return WaitReason.POLICY if step.preempted else None
