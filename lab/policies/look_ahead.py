"""Admission by looking ahead step by step, in blocks, as tokasaurus does."""

from lab.core.plan import PlanDraft
from lab.core.request import Request
from lab.policies.admission import AdmitIf


class LookAhead(AdmitIf):
    """Admits what leaves the pool enough blocks in every step to come, if all run to max_tokens.

    The rule of tokasaurus's `calc_block_usage_over_time` (2025). Beside lightllm's peak it counts whole blocks as they
    are handed out, and knows that a prompt in chunks decodes later than one that is done. tokasaurus expects of an
    answer what earlier ones were long; here it is max_tokens. Time is quadratic in the running requests.
    """

    def _fits(self, step: PlanDraft, request: Request) -> bool:
        return self._peak(step, [*self.running, request]) <= self.cache.num_blocks

    def _peak(self, step: PlanDraft, requests: list[Request]) -> int:
        """Blocks in use when most are, in some step in which a request ends; step 0 is the one in the making."""
        size, prompts = self.cache.block_size, -step.left
        per_step = max(1, self.config.max_num_batched_tokens - len(self.running))  # for prompts, beside decodes
        lives = []  # tokens at first, the step that yields the next token, the last step
        for r in requests:
            prompts += r.num_uncomputed_tokens
            decodes_from = max(0, -(-prompts // per_step)) if r.num_uncomputed_tokens else 0
            lives.append((r.num_tokens, decodes_from, decodes_from + r.max_kv_tokens - r.num_tokens))
        return max(
            sum(-(-(tokens + max(0, now - start)) // size) for tokens, start, end in lives if end >= now)
            for now in {end for _, _, end in lives}
        )
