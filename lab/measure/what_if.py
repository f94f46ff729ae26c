"""What a long prompt would need in memory on a machine that is not here: closed form and count, by chunk size.

    from lab.measure.presets import find_config
    for row in what_if(find_config("llama-3.1-8b"), 131072, [512, 2048, 8192, 131072]):
        row.chunk_size, row.peak_bytes, row.parts, row.kv_bytes, row.weight_bytes, row.total_bytes

Every row was computed twice: by the ledger's closed form, and by running its highest step on tensors without data
(FakeTensorMode) and counting the storages alive. The run stands for the operations of the device asked for. CPU and
GPU differ in attention: on the CPU a chunk attends in two parts to what came before it and to itself, on a GPU of
compute capability 8.0 or more in one. (The count has the host's block table in it, 8 bytes a block, which no model but
the tiny ones would notice.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lab.core.config import require_at_least
from lab.core.errors import ConfigError
from lab.measure.ledger import (
    Moment,
    Step,
    kv_bytes,
    logits_bytes,
    mask_bytes,
    measure_step,
    prefill_steps,
    step_moments,
    step_peak,
    weight_bytes,
)
from lab.model.attention import AttentionBackend, Math, Sdpa
from lab.model.batch import Batch
from lab.model.config import ModelConfig
from lab.model.device import dtype_name
from lab.model.kv_store import KVStore
from lab.model.sdpa import HALF

CPU = torch.device("cpu")
MAX_LENGTH = 2**24  # tokens; the positions of a step are counted out one by one


class FlashShapes(Sdpa):
    """What `Sdpa` allocates on a GPU of capability 8.0 or more, on tensors without data and without the GPU.

    PyTorch's CPU build refuses to slice a tensor that claims to be on a GPU, so the tensors are the CPU's and the
    operation is the GPU's: the one that SDPA calls there for half precision.
    """

    def __init__(self) -> None:
        super().__init__(CPU, torch.bfloat16)

    def _attend(self, q: Tensor, store: KVStore, layer: int, batch: Batch, i: int) -> Tensor:
        k, v = store.select(layer, batch.kv_blocks[i], batch.context_lens[i])
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        out: Tensor = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]
        return out[0].transpose(0, 1)


@dataclass(frozen=True)
class WhatIfRow:
    """One chunk size. All in bytes; the parts are of the step that needs most, and not all alive at one moment."""

    chunk_size: int
    chunks: int
    step: Step  # of the chunks, the one that needs most
    peak: Moment  # its highest moment, by the closed form
    measured_bytes: int  # the same, counted
    kv_bytes: int  # of all the prompt's tokens: the same for every chunk size
    weight_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Transient: above weights and KV cache."""
        return self.peak.nbytes

    @property
    def total_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.peak_bytes

    @property
    def parts(self) -> dict[str, int]:
        """What each part of the step takes while it lasts: a norm, in float32; q, k and v; what attention makes; its
        mask; the MLP's intermediates; the logits of the one row that is sampled, and what those of all would take."""
        moments = {moment.name: moment.parts for moment in step_moments(self.step)}
        attention = max(sum(_own(moments[name]).values()) for name in ("softmax", "attention") if name in moments)
        config, dtype = self.step.config, self.step.dtype
        return {
            "norm": max(parts["norm"] for parts in moments.values() if "norm" in parts),
            "q, k, v": moments["q, k, v"]["q, k, v"],
            "attention": attention,
            "mask": mask_bytes(self.step),
            "mlp": moments["mlp"]["gate, up"],
            "logits, 1 row": logits_bytes(config, 1, dtype),
            "logits, all rows": logits_bytes(config, self.step.num_tokens, dtype),
        }


def _own(parts: Mapping[str, int]) -> dict[str, int]:
    """Of the moments of attention: what attention itself allocates."""
    return {name: n for name, n in parts.items() if name not in ("batch", "residual", "rope", "q")}


def what_if(
    config: ModelConfig,
    length: int,
    chunk_sizes: Sequence[int],
    *,
    dtype: torch.dtype = torch.bfloat16,
    attention: str = "sdpa",
    device: torch.device = CPU,
    block_size: int = 16,
) -> list[WhatIfRow]:
    """A row a chunk size for a prompt of `length` tokens that is alone; seconds, whatever the model.

    The length may be above the model's positions: nothing is computed. Raises ConfigError for sizes below 1, an unknown
    attention, or "sdpa" on a GPU in a precision that the flash kernel lacks.
    """
    for name, tokens in (("length", length), ("block_size", block_size)):
        require_at_least(name, tokens, 1)
        if tokens > MAX_LENGTH:
            raise ConfigError(f"{name} is {tokens}; it must be at most {MAX_LENGTH}")
    for size in chunk_sizes:
        require_at_least("chunk size", size, 1)
    backend = what_if_backend(attention, device, dtype)
    last = Step(config, length, length, dtype, backend, device, block_size)
    return [_row(last, size) for size in dict.fromkeys(chunk_sizes)]


def _row(last: Step, chunk_size: int) -> WhatIfRow:
    steps = prefill_steps(last, chunk_size)
    # Each of the others is the last but one with fewer keys, which never needs more.
    highest = max(steps[0], *steps[-2:], key=lambda step: step_peak(step).nbytes)
    config, length, dtype = last.config, last.kv_length, last.dtype
    return WhatIfRow(
        chunk_size,
        len(steps),
        highest,
        step_peak(highest),
        measure_step(replace(highest, device=CPU)).peak_bytes,
        kv_bytes(config, length, dtype),
        weight_bytes(config, dtype),
    )


def what_if_backend(name: str, device: torch.device, dtype: torch.dtype) -> AttentionBackend:
    """The backend called `name` as it is on that device, which need not be here; ConfigError if there is none."""
    if name == "math":
        return Math()
    if name != "sdpa":
        raise ConfigError(f"attention {name!r} has no what-if; there is sdpa, math")
    if device.type == "cpu":
        return Sdpa(device, dtype)
    if dtype not in HALF:
        raise ConfigError(f"flash attention has no {dtype_name(dtype)}; ask for bfloat16 or float16, or for device cpu")
    return FlashShapes()
