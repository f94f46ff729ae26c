"""The meters of lab.measure against the GPU's own."""

import gc
import time

import pytest
import torch

from lab.core.errors import LabError
from lab.measure.ledger import Step, run_step, step_peak
from lab.measure.timing import measure
from lab.model.attention import select_backend
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.device import Timer, allocator_stats, empty_cache, reset_peak_memory, synchronize
from lab.model.kv_store import KVStore

# Enough heads that flash attention does not split the keys: its partial sums are scratch space no counter sees.
CONFIG = ModelConfig(
    vocab_size=8192,
    hidden_size=2048,
    intermediate_size=5632,
    num_hidden_layers=2,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    max_position_embeddings=8192,
)


@pytest.mark.parametrize(("num_tokens", "kv_length"), [(1024, 1024), (1024, 4096)])
def test_peak_memory_is_the_allocator_s(
    device: torch.device, dtype: torch.dtype, num_tokens: int, kv_length: int
) -> None:
    shapes = CONFIG.parameter_shapes()
    decoder = Decoder(CONFIG, {name: torch.zeros(s, dtype=dtype, device=device) for name, s in shapes.items()})
    attention = select_backend("sdpa", CONFIG, device, dtype, 16).backend
    step = Step(CONFIG, num_tokens, kv_length, dtype, attention, device)
    store = KVStore(CONFIG, step.num_blocks, step.block_size, dtype=dtype, device=device)
    run_step(step, decoder, store)  # cuBLAS takes its workspace at the first product and keeps it
    gc.collect()
    reset_peak_memory(device)
    before = allocator_stats(device)
    memory = run_step(step, decoder, store)
    after = allocator_stats(device)
    assert before and after
    requested = after.peak_requested - before.peak_requested
    assert memory.peak_bytes == pytest.approx(requested, rel=0.02)
    assert step_peak(step).nbytes == pytest.approx(requested, rel=0.02)


def test_three_numbers_called_gpu_memory(device: torch.device) -> None:
    def stats():
        found = allocator_stats(device)
        assert found and found.allocated <= found.reserved <= found.device_used
        return found

    gc.collect()  # or what earlier tests left would be freed in between
    before = stats()
    gibibyte = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    held = stats()
    assert held.allocated == before.allocated + (1 << 30)
    del gibibyte
    dropped = stats()
    assert dropped.allocated == before.allocated  # the tensor is gone,
    assert dropped.reserved == held.reserved  # the allocator keeps its block,
    empty_cache(device)
    assert stats().reserved <= held.reserved - (1 << 30)  # and gives it back when asked


def test_events_agree_with_the_wall(device: torch.device) -> None:
    """Of the same products: a GPU that gets warm slows down, so that those of a moment later take longer."""
    a, timer = torch.rand(4096, 4096, device=device), Timer(device)
    assert measure(lambda: a @ a, device, warmup=3, repeats=20).clock == "cuda events"
    begin = time.perf_counter()
    timer.start()
    for _ in range(20):
        a @ a
    timer.stop()
    launched = (time.perf_counter() - begin) * 1e3
    synchronize(device)
    wall = (time.perf_counter() - begin) * 1e3
    assert timer.elapsed_ms() == pytest.approx(wall, rel=0.05)
    assert launched <= 0.2 * wall  # what a host that does not wait would report


def test_an_event_read_before_it_is_done(device: torch.device) -> None:
    a = torch.rand(4096, 4096, device=device)
    timer = Timer(device)
    timer.start()
    for _ in range(50):
        a @ a
    timer.stop()
    with pytest.raises(LabError, match=r"synchronize\(device\) first"):
        timer.elapsed_ms()
    synchronize(device)
    assert timer.elapsed_ms() > 0
