"""Admission by what requests will need until they end, beside vLLM's rule, which looks at what they know now."""

from abc import abstractmethod

from lab.core.plan import PlanDraft, WaitReason
from lab.core.request import Request
from lab.core.scheduler import Scheduler


class AdmitIf(Scheduler):
    """vLLM's scheduler, but the head of the queue waits for blocks until it also `_fits` in the long run.

    With nobody running it is admitted: submit has made sure that it fits alone.
    """

    def _why_wait(self, step: PlanDraft, request: Request, n: int) -> WaitReason | None:
        reason = super()._why_wait(step, request, n)
        if reason is None and self.running and not self._fits(step, request):
            return WaitReason.BLOCKS
        return reason

    @abstractmethod
    def _fits(self, step: PlanDraft, request: Request) -> bool:
        """Whether the pool will hold the running requests and this one until they end."""


class Reserve(AdmitIf):
    """The worst case is set aside: all max_tokens of all running requests, as TensorRT-LLM's GUARANTEED_NO_EVICT does.

    Nobody is ever preempted; where answers stop early, blocks stay empty.
    """

    def _fits(self, step: PlanDraft, request: Request) -> bool:
        return self._reserved(request) + sum(map(self._reserved, self.running)) <= self.cache.num_blocks

    def _reserved(self, request: Request) -> int:
        return -(-request.max_kv_tokens // self.cache.block_size)


class Peak(AdmitIf):
    """The highest demand to come, if everybody runs to max_tokens: lightllm's rule (its `router/req_queue`).

    With one token each per step, the request with the i-th most tokens left ends when i are there (itself included), so
    the demand at that moment is what those i hold now plus what each of them adds till then. Blocks that are not full
    are counted as if all but one of their slots were empty. A prompt still in chunks makes the forecast too low; vLLM's
    preemption repairs it.
    """

    def _fits(self, step: PlanDraft, request: Request) -> bool:
        return self._peak([*self.running, request]) <= self.cache.num_tokens

    def _peak(self, requests: list[Request]) -> int:
        """KV slots in use when most are."""
        peak = held = 0
        by_left = sorted(requests, key=lambda r: r.num_tokens - r.max_kv_tokens)
        for i, request in enumerate(by_left, start=1):
            held += request.num_tokens + self.cache.block_size - 1
            peak = max(peak, held + i * (request.max_kv_tokens - request.num_tokens))
        return peak
