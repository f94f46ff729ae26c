"""The copies of a `SwapPlan` on real tensors: KV blocks between the device's pool and one in host memory."""

import torch

from lab.core import Scheduler, StepPlan
from lab.engine.executor import TorchExecutor
from lab.model.attention import AttentionBackend
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.policies.swap import BlockCopy, SwapPlan


class SwappingExecutor(TorchExecutor):
    """Moves KV out and in before it computes a plan.

    `host` has the layout of `store`, in host memory, pinned where the device is a GPU: the copies are then asynchronous
    and, in the model's own stream, in order with its kernels. `bytes_out` and `bytes_in` count what was moved.
    """

    def __init__(self, decoder: Decoder, store: KVStore, attention: AttentionBackend, host: KVStore) -> None:
        super().__init__(decoder, store, attention)
        self.host = host
        self.bytes_out = self.bytes_in = 0

    @torch.inference_mode()
    def execute(self, plan: StepPlan, scheduler: Scheduler) -> dict[str, int]:
        assert isinstance(plan, SwapPlan), f"{type(scheduler).__name__} plans no swaps; use the scheduler Swap"
        for copy in plan.swapped_out:
            self.bytes_out += self.swap_out(copy)
        for copy in plan.swapped_in:
            self.bytes_in += self.swap_in(copy)
        return super().execute(plan, scheduler)

    def swap_out(self, copy: BlockCopy) -> int:
        """Copy the request's blocks to the host; returns the bytes."""
        nbytes = 0
        for device, host in copy.runs():
            for here, there in zip(self.store.pools, self.host.pools, strict=True):
                nbytes += there[host].copy_(here[device], non_blocking=True).nbytes
        return nbytes

    def swap_in(self, copy: BlockCopy) -> int:
        """Copy the request's blocks back from the host; returns the bytes."""
        nbytes = 0
        for device, host in copy.runs():
            for here, there in zip(self.store.pools, self.host.pools, strict=True):
                nbytes += here[device].copy_(there[host], non_blocking=True).nbytes
        return nbytes


def host_store(store: KVStore, config: ModelConfig, num_blocks: int) -> KVStore:
    """A store in host memory for blocks of `store`."""
    pool = store.pools[0]
    pinned = pool.device.type == "cuda"
    cpu = torch.device("cpu")
    return KVStore(config, num_blocks, store.block_size, dtype=pool.dtype, device=cpu, pin_memory=pinned)
