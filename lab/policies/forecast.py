"""SGLang's admission: running requests are expected to use a share of their max_tokens, learnt from preemptions."""

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.plan import PlanDraft, StepPlan
from lab.core.request import Request
from lab.policies.admission import AdmitIf

INIT_RATIO, MIN_RATIO = 0.7, 0.7 * 0.14
DECAY = (INIT_RATIO - MIN_RATIO) / 600  # a step
RETRACT_STEPS = 20  # steps that those left shall have room for after a preemption
MAX_EXPECTED_TOKENS = 4096


class ForecastRatio(AdmitIf):
    """The rule and the constants of SGLang's `PrefillAdder` and `NewTokenRatioTracker` (repository at 00550cd, 2026).

    Each running request is expected to add `ratio` of the output tokens it may still make, those admitted in this step
    and the candidate all of them. The ratio falls step by step, so admission grows bolder, until a preemption sets it
    to what the running requests have used of theirs. Whom to preempt stays vLLM's choice.
    """

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        super().__init__(config, cache)
        self.ratio = INIT_RATIO

    def schedule(self) -> StepPlan:
        if not self.running:
            self.ratio = INIT_RATIO
        plan = super().schedule()
        self.ratio = self._used_ratio() if plan.preempted else max(MIN_RATIO, self.ratio - DECAY)
        return plan

    def _used_ratio(self) -> float:
        used = sum(len(r.output_token_ids) + RETRACT_STEPS for r in self.running)
        return min(1.0, used / (sum(r.sampling.max_tokens for r in self.running) + 1))

    def _fits(self, step: PlanDraft, request: Request) -> bool:
        free = self.pool.num_free * self.cache.block_size
        expected = sum(r.num_uncomputed_tokens + self._share(step, r) * outstanding(r) for r in self.running)
        return request.num_tokens + outstanding(request) + expected < free

    def _share(self, step: PlanDraft, request: Request) -> float:
        admitted_now = request.num_computed_tokens == step.plan.get(request.request_id)
        return 1.0 if admitted_now else self.ratio


def outstanding(request: Request) -> int:
    """Output tokens that it may still make, as far as SGLang looks ahead."""
    return min(request.sampling.max_tokens - len(request.output_token_ids), MAX_EXPECTED_TOKENS)
