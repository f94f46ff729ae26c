"""Who computes how many tokens in the next step: the rules of vLLM 0.33.0's V1 scheduler.

There is no prefill and no decode here. A request has known tokens and computed tokens; a step feeds the difference, cut
by the chunk cap and by what is left of the token budget. That running requests come before waiting ones is all it takes
for decodes to come first. Text only: no prefix cache, no speculative decoding, no connectors.
"""

import math
from collections.abc import Iterable, Mapping

from lab.core.block_pool import BlockPool
from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.errors import RequestRejected
from lab.core.plan import NO_CAP, PlanDraft, StepPlan, WaitReason
from lab.core.request import FinishReason, Request, RequestState
from lab.core.waiting_queue import QUEUES


class Scheduler:
    """Owns the requests from submit to finish, and the block pool.

    A step is `plan = schedule()`, then the model runs, then `update(plan, sampled)`. `abort` may be called between any
    two of these.
    """

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        self.config = config
        self.cache = cache
        self.pool = BlockPool(cache)
        self.requests: dict[str, Request] = {}
        self.running: list[Request] = []
        self.waiting = QUEUES[config.policy]()
        self.head_waits_for: WaitReason | None = None

    # -- requests in and out ------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> None:
        """Queue a request. Raises `RequestRejected`, with nothing changed, if it is malformed or can never fit."""
        self._check(request)
        self.requests[request.request_id] = request
        self.waiting.push(request)

    def abort(self, request_id: str) -> bool:
        """End a request now and free its blocks; False if it is unknown or already over."""
        request = self.requests.get(request_id)
        if request is None:
            return False
        self._finish(request, FinishReason.ABORT)
        return True

    @property
    def has_unfinished(self) -> bool:
        return bool(self.requests)

    def waiting_reasons(self) -> dict[str, WaitReason]:
        """One reason for each waiting request, as of the last step; what came since then is behind the head."""
        head_reason = self.head_waits_for
        if head_reason is None or not self.waiting:
            return {}
        reasons = dict.fromkeys((r.request_id for r in self.waiting), WaitReason.BEHIND_HEAD)
        reasons[self.waiting.head.request_id] = head_reason
        return reasons

    def _check(self, request: Request) -> None:
        name, prompt, pool = request.request_id, request.num_prompt_tokens, self.cache.num_tokens
        if name in self.requests:
            raise RequestRejected(f"request {name!r} is already here; give each request an id of its own")
        if request.state is not RequestState.WAITING:
            raise RequestRejected(f"request {name!r} is {request.state.value} already; make a new one")
        if prompt == 0:
            raise RequestRejected(f"request {name!r} has an empty prompt; it needs at least 1 token")
        limit, total = self.config.max_model_len, prompt + request.sampling.max_tokens
        if limit is not None and total > limit:
            raise RequestRejected(
                f"request {name!r}: {prompt} prompt tokens and max_tokens {request.sampling.max_tokens} make {total}, "
                f"above the position limit of {limit}; shorten the prompt or lower max_tokens"
            )
        if not math.isfinite(request.arrival):
            raise RequestRejected(f"request {name!r} arrives at {request.arrival}; it must be a number of seconds")
        budget = self.config.max_num_batched_tokens
        if not self.config.enable_chunked_prefill and request.max_kv_tokens > budget:
            raise RequestRejected(
                f"request {name!r} can come to {request.max_kv_tokens} tokens ({prompt} prompt tokens, max_tokens "
                f"{request.sampling.max_tokens}), all in one step if it is preempted, and with chunked prefill off a "
                f"step takes {budget}; turn chunking on or raise max_num_batched_tokens"
            )
        if request.max_kv_tokens > pool:
            raise RequestRejected(
                f"request {name!r} can need {request.max_kv_tokens} KV slots ({prompt} prompt tokens, max_tokens "
                f"{request.sampling.max_tokens}) and the whole pool has {pool}; shorten it or enlarge the pool"
            )

    # -- one step -----------------------------------------------------------------------------------------------------

    def schedule(self) -> StepPlan:
        """Plan one step: allocate its blocks, preempt where they run out, and count its tokens as computed."""
        step = PlanDraft(left=self.config.max_num_batched_tokens, cap=self._chunk_cap())
        self.head_waits_for = self._fill(step)
        return StepPlan(step.plan, tuple(step.preempted))

    def _chunk_cap(self) -> int:
        """Most tokens of one request in this step. A request that is alone has no cap."""
        alone = len(self.requests) == 1
        return NO_CAP if alone else self.config.long_prefill_token_threshold or NO_CAP

    def _fill(self, step: PlanDraft) -> WaitReason | None:
        """Who is computed together: here all the running, then who is admitted. Returns why the head waits."""
        self._schedule_running(step, list(self.running))
        return self._admit_waiting(step)

    def _schedule_running(self, step: PlanDraft, requests: Iterable[Request]) -> None:
        num_slots = self.pool.num_slots
        running = RequestState.RUNNING  # looked up once: in Python 3.11 that is slow
        for request in requests:
            if request.state is not running:  # preempted for one before it
                continue
            n = request.num_tokens - request.num_computed_tokens
            if n > 1 or not step.left:  # else a decode's one token, which no limit cuts
                n = step.cut(n)
            if n > 0:
                step.plan[request.request_id] = n
                step.left -= n
                request.num_computed_tokens += n
                if request.num_computed_tokens > num_slots[request.request_id]:  # seldom: a block lasts many tokens
                    self._make_room(step, request)

    def _make_room(self, step: PlanDraft, request: Request) -> None:
        """Blocks for what is planned of the request, whoever must give way for them, even the request itself."""
        while request.request_id in step.plan and not self.pool.grow(request.request_id, request.num_computed_tokens):
            self._preempt(step, self.waiting.victim(self.running))

    def _preempt(self, step: PlanDraft, victim: Request) -> None:
        """Take the victim's blocks and put it back in the queue; its output so far is kept."""
        self.running.remove(victim)
        n = step.plan.pop(victim.request_id, 0)
        step.left += n
        victim.num_computed_tokens -= n
        self._evict(victim)
        step.preempted.append(victim.request_id)
        victim.num_preemptions += 1
        victim.state = RequestState.PREEMPTED
        self.waiting.push_preempted(victim)

    def _evict(self, victim: Request) -> None:
        """Drop the victim's KV: all that it knows will be recomputed, its output as if it were prompt."""
        self.pool.release(victim.request_id)
        victim.num_computed_tokens = 0

    def _admit_waiting(self, step: PlanDraft) -> WaitReason | None:
        """Admit from the head of the queue while it fits; a blocked head blocks all. Returns why it stopped."""
        while self.waiting:
            request = self.waiting.head
            n = step.cut(request.num_uncomputed_tokens)
            reason = self._why_wait(step, request, n)
            if reason is None and not self.pool.grow(request.request_id, request.num_computed_tokens + n):
                reason = WaitReason.BLOCKS
            if reason is not None:
                return reason
            self.waiting.pop()
            self._admit(request)
            self._schedule_running(step, [request])
        return None

    def _admit(self, request: Request) -> None:
        request.state = RequestState.RUNNING
        self.running.append(request)

    def _why_wait(self, step: PlanDraft, request: Request, n: int) -> WaitReason | None:
        if step.preempted:
            return WaitReason.POLICY
        if len(self.running) >= self.config.max_num_seqs:
            return WaitReason.MAX_SEQS
        if n == 0 or (not self.config.enable_chunked_prefill and n < min(request.num_uncomputed_tokens, step.cap)):
            return WaitReason.BUDGET
        num_tokens = request.num_tokens if self.config.reserve_full_prompt else request.num_computed_tokens + n
        watermark = self.cache.watermark_blocks if self.running else 0
        if self.pool.num_missing(request.request_id, num_tokens) + watermark > self.pool.num_free:
            return WaitReason.BLOCKS
        return None

    # -- after the model ----------------------------------------------------------------------------------------------

    def update(self, plan: StepPlan, sampled: Mapping[str, int]) -> list[Request]:
        """Give each planned request whose known tokens are all computed its token; return those now over."""
        finished, find = [], self.requests.get
        for request_id in plan.num_tokens:
            request = find(request_id)  # gone if it was aborted while the model ran
            if request is None or request.num_computed_tokens < request.num_tokens:
                continue
            reason = request.append_output(sampled[request_id])
            if reason is not None:
                self._finish(request, reason)
                finished.append(request)
        return finished

    def retract(self, plan: StepPlan) -> None:
        """The model did not run the plan: its tokens are not computed after all, and the next step plans them again."""
        for request_id, n in plan.num_tokens.items():
            request = self.requests.get(request_id)  # gone, or another of its id, if it was aborted meanwhile
            if request is not None and request.state is RequestState.RUNNING:
                request.num_computed_tokens -= n

    def _finish(self, request: Request, reason: FinishReason) -> None:
        if request.state is RequestState.RUNNING:
            self.running.remove(request)
            self.pool.release(request.request_id)
        else:
            self.waiting.remove(request)
        del self.requests[request.request_id]
        request.state = RequestState.FINISHED
        request.finish_reason = reason
