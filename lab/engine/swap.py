"""The copies of a `SwapPlan` on real tensors: KV blocks between the device's pool and one in host memory."""

from collections.abc import Iterable

import torch
from torch import Tensor

from lab.core import Scheduler, StepPlan
from lab.engine.executor import TorchExecutor
from lab.model.attention import AttentionBackend
from lab.model.batch import Batch
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.device import SideStream
from lab.model.kv_store import KVStore
from lab.policies.swap import BlockCopy, SwapPlan


class SwappingExecutor(TorchExecutor):
    """Moves KV out and in on a stream of its own before it computes a plan.

    Two edges keep it right, in both directions. `fork`: a copy out reads what was computed, and a copy in overwrites
    what was read, by kernels that may not have run yet. `join`: the plan's kernels overwrite what is being copied out,
    and read what is being copied in; it comes as late as it can, so that the batch is built meanwhile. `host` has the
    layout of `store`, in host memory, pinned where the device is a GPU. `bytes_out` and `bytes_in` count what was
    moved.
    """

    def __init__(
        self,
        decoder: Decoder,
        store: KVStore,
        attention: AttentionBackend,
        host: KVStore,
        side: SideStream | None = None,
    ) -> None:
        super().__init__(decoder, store, attention)
        self.host = host
        self.side = side or SideStream(decoder.device)
        self.bytes_out = self.bytes_in = 0

    @torch.inference_mode()
    def execute(self, plan: StepPlan, scheduler: Scheduler) -> dict[str, int]:
        assert isinstance(plan, SwapPlan), f"{type(scheduler).__name__} plans no swaps; use the scheduler Swap"
        self.side.fork()
        for copy in plan.swapped_out:
            self.bytes_out += self.swap_out(copy)
        for copy in plan.swapped_in:
            self.bytes_in += self.swap_in(copy)
        return super().execute(plan, scheduler)

    def forward(self, batch: Batch) -> Tensor:
        self.side.join()  # also for copies of a step before this one that failed halfway
        return super().forward(batch)

    def swap_out(self, copy: BlockCopy) -> int:
        """Copy the request's blocks to the host; returns the bytes."""
        return self.move(copy.runs(), self.store, self.host)

    def swap_in(self, copy: BlockCopy) -> int:
        """Copy the request's blocks back from the host; returns the bytes."""
        return self.move(((host, device) for device, host in copy.runs()), self.host, self.store)

    def move(self, runs: Iterable[tuple[slice, slice]], source: KVStore, target: KVStore) -> int:
        nbytes = 0
        for here, there in runs:
            for old, new in zip(source.pools, target.pools, strict=True):
                self.side.copy(new[there], old[here])
                nbytes += old[here].nbytes
        return nbytes


def host_store(store: KVStore, config: ModelConfig, num_blocks: int) -> KVStore:
    """A store in host memory for blocks of `store`."""
    pool = store.pools[0]
    pinned = pool.device.type == "cuda"
    cpu = torch.device("cpu")
    return KVStore(config, num_blocks, store.block_size, dtype=pool.dtype, device=cpu, pin_memory=pinned)
