"""One prefill of one prompt through the scheduler, the loop and the executor, with all that it left behind."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lab.core import CacheConfig, ConfigError, Loop, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.core.config import require_at_least
from lab.engine.executor import TorchExecutor
from lab.measure.steps import BLOCK_SIZE
from lab.model.attention import AttentionBackend
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore

NAME = "prompt"


class Prefill:
    """A prompt of L tokens under a token budget of `chunk_size`, ready to run.

    A request that is alone is cut by the budget only, so the plan is ceil(L / chunk_size) chunks. The KV cache has
    exactly the blocks the prompt needs and is filled with NaN first: a slot that is read before it is written poisons
    all that follows, and the slots that were written can be counted.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompt: Sequence[int],
        chunk_size: int,
        *,
        attention: AttentionBackend,
        block_size: int = BLOCK_SIZE,
        executor_type: type[TorchExecutor] = TorchExecutor,
        keep_hidden: bool = False,
    ) -> None:
        self.decoder = decoder
        self.chunk_size = chunk_size
        limit = decoder.config.max_position_embeddings
        require_at_least("block_size", block_size, 1)
        if block_size > limit:
            raise ConfigError(f"block_size is {block_size}, above the position limit of {limit}; take less")
        cache = CacheConfig(num_blocks=max(1, -(-len(prompt) // block_size)), block_size=block_size)
        self.store = KVStore(decoder.config, cache.num_blocks, block_size, dtype=decoder.dtype, device=decoder.device)
        for tensor in (*self.store.keys, *self.store.values):
            tensor.fill_(float("nan"))
        config = SchedulerConfig(max_num_batched_tokens=chunk_size, max_num_seqs=1, max_model_len=limit)
        observe = self._observe if keep_hidden else None
        self.scheduler = Scheduler(config, cache)
        self.loop = Loop(self.scheduler, executor_type(decoder, self.store, attention, observe))
        self.request = Request(NAME, prompt, SamplingParams(max_tokens=1))
        self.loop.submit(self.request)
        self._hidden: list[Tensor] = []
        self.sampled_logits = torch.empty(0)  # [1, vocab] of the last step; needs `keep_hidden`
        self.block_table: list[int] = []

    def run(self) -> "Prefill":
        self.loop.run()
        return self

    def _observe(self, hidden: Tensor, logits: Tensor) -> None:
        self._hidden.append(hidden)
        self.sampled_logits = logits
        self.block_table = list(self.scheduler.pool.table(NAME))

    @property
    def plan(self) -> list[int]:
        """Tokens of each step."""
        return [step.num_tokens[NAME] for step in self.loop.trace.steps]

    @property
    def milliseconds(self) -> float:
        """From the start of the first chunk to the sampled token, which waits for the device."""
        steps = self.loop.trace.steps
        return 1000 * (steps[-1].end - steps[0].start)

    @property
    def steps_that_sampled(self) -> int:
        """How many steps yielded a token: 1, the last, whatever the number of chunks."""
        return len(self.loop.trace.requests[NAME].token_times)

    @property
    def hidden(self) -> Tensor:
        """`[L, d]` after the final norm; needs `keep_hidden`."""
        return torch.cat(self._hidden)

    def kv(self, layer: int) -> Tensor:
        """`[2, L, kv_heads, head_dim]`: keys and values of a layer in token order; needs `keep_hidden`."""
        return torch.stack(self.store.read(layer, self.block_table, self.request.num_prompt_tokens))

    @property
    def kv_bytes(self) -> int:
        """Bytes of KV that were written: what is no longer NaN."""
        tensors = (*self.store.keys, *self.store.values)
        return sum(int((~t.isnan()).sum()) * t.element_size() for t in tensors)
