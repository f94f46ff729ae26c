"""Preemption by swapping: a victim's KV goes to host memory and comes back, in place of being computed again.

The host pool has a fixed size, set aside at start; it is not the system's swap. A victim that it cannot hold is
recomputed. Who was swapped out returns before anybody new. vLLM had this before V1 (`swap_space`); V1 only recomputes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.core.block_pool import BlockPool
from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.errors import ConfigError
from lab.core.plan import StepPlan
from lab.core.request import Request
from lab.core.scheduler import Scheduler


@dataclass(frozen=True)
class BlockCopy:
    """One request's KV between the pools: block `device[i]` and block `host[i]` hold the same tokens."""

    request_id: str
    device: tuple[int, ...]
    host: tuple[int, ...]

    def runs(self) -> Iterator[tuple[slice, slice]]:
        """The copy as few copies of consecutive blocks: (device blocks, host blocks)."""
        start = 0
        for stop in range(1, len(self.host) + 1):
            d, h, n = self.device[start], self.host[start], stop - start
            if stop == len(self.host) or (self.device[stop], self.host[stop]) != (d + n, h + n):
                yield slice(d, d + n), slice(h, h + n)
                start = stop


@dataclass(frozen=True)
class SwapPlan(StepPlan):
    """A plan whose copies must be made before its tokens are computed: their blocks have new owners already.

    A step that preempts admits nobody, so a step swaps out or in, never both.
    """

    swapped_out: tuple[BlockCopy, ...] = ()
    swapped_in: tuple[BlockCopy, ...] = ()


class Swap(Scheduler):
    """vLLM's scheduler, with `cache.num_cpu_blocks` blocks of host memory for the KV of the preempted.

    Raises ConfigError for the priority policy, whose queue may put somebody new before those who were swapped out.
    """

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        if config.policy != "fcfs":
            raise ConfigError(f"policy is {config.policy!r}; those swapped out return first, so swap needs 'fcfs'")
        super().__init__(config, cache)
        self.host = BlockPool(CacheConfig(cache.num_cpu_blocks, cache.block_size)) if cache.num_cpu_blocks else None
        self._out: list[BlockCopy] = []
        self._in: list[BlockCopy] = []

    def schedule(self) -> SwapPlan:
        self._out, self._in = [], []
        plan = super().schedule()
        return SwapPlan(plan.num_tokens, plan.preempted, tuple(self._out), tuple(self._in))

    def _evict(self, victim: Request) -> None:
        name, num_tokens = victim.request_id, victim.num_computed_tokens
        if self.host is None or not self.host.grow(name, num_tokens):
            super()._evict(victim)
            return
        self._out.append(self._copy(self.host, name))
        self.pool.release(name)  # its computed tokens stay computed

    def _admit(self, request: Request) -> None:
        super()._admit(request)
        if self.host is not None and self.host.table(request.request_id):
            self._in.append(self._copy(self.host, request.request_id))
            self._release_host(request.request_id)

    def retract(self, plan: StepPlan) -> None:
        """As in the base class; nobody knows which copies were made, so those they were for are recomputed."""
        super().retract(plan)
        assert isinstance(plan, SwapPlan)
        for copy in (*plan.swapped_out, *plan.swapped_in):
            self._release_host(copy.request_id)
            if copy.request_id in self.requests:
                self.requests[copy.request_id].num_computed_tokens = 0

    def abort(self, request_id: str) -> bool:
        self._release_host(request_id)
        return super().abort(request_id)

    def _copy(self, host: BlockPool, request_id: str) -> BlockCopy:
        blocks = tuple(host.table(request_id))
        return BlockCopy(request_id, tuple(self.pool.table(request_id)[: len(blocks)]), blocks)

    def _release_host(self, request_id: str) -> None:
        if self.host is not None and self.host.table(request_id):
            self.host.release(request_id)
