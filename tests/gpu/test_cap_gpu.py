"""The allocator's own limit: a whole prompt runs out of memory, in chunks it fits, and nothing is lost."""

import gc

import pytest
import torch

from lab.checks.capped import WIDE, capped_prefill
from lab.checks.equivalence import random_prompt
from lab.measure.cap import OutOfMemory, device_cap
from lab.model.decoder import Decoder
from lab.model.device import allocator_stats, parse_dtype, total_memory
from lab.model.tiny import random_weights

MIB = 2**20
LENGTH = 8192


def test_whole_is_refused_and_chunks_fit(device: torch.device) -> None:
    dtype = parse_dtype(None, device)
    decoder = Decoder(WIDE, random_weights(WIDE, 0)).to(dtype, device)
    prompt = random_prompt(decoder, LENGTH)
    capped_prefill(decoder, prompt, [256, LENGTH], lambda: device_cap(device, 1024 * MIB), attention="sdpa")  # warm-up
    chunk, whole = capped_prefill(
        decoder, prompt, [256, LENGTH], lambda: device_cap(device, 48 * MIB), attention="sdpa"
    )
    assert chunk.fits and chunk.predicted_bytes < 24 * MIB
    assert whole.refused and "out of memory" in whole.refused and whole.predicted_bytes > 64 * MIB
    assert whole.leaked_bytes == chunk.leaked_bytes == 0 and whole.computed_tokens == 0


def test_everything_comes_back_although_the_exception_is_kept(device: torch.device) -> None:
    def step() -> torch.Tensor:
        held = torch.empty(16 * MIB, dtype=torch.uint8, device=device)
        return held[0] + torch.empty(512 * MIB, dtype=torch.uint8, device=device)[0]

    before = allocator_stats(device)
    with pytest.raises(OutOfMemory, match="CUDA out of memory") as caught, device_cap(device, 64 * MIB):
        step()
    gc.collect()
    after = allocator_stats(device)
    assert caught.value and before and after and abs(after.allocated - before.allocated) <= MIB
    total = total_memory(device)
    assert total is not None
    torch.empty((total - after.device_used) * 8 // 10, dtype=torch.uint8, device=device)  # the limit is gone
