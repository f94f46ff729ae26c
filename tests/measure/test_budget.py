"""KV blocks from a memory budget, by hand and against what vLLM said to a user."""

import pytest
import torch

from lab.core.errors import ConfigError
from lab.measure.budget import KVBudget, kv_budget
from lab.measure.presets import PRESETS
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.model.tiny import TINY, random_weights

GIB = 2**30
CPU = torch.device("cpu")
LLAMA = PRESETS["llama-3-8b"]


def test_by_hand() -> None:
    budget = kv_budget(LLAMA, 24 * GIB, max_num_batched_tokens=2048)
    assert budget.requested == int(24 * GIB * 0.9) and budget.weights == 2 * 8030261248
    assert budget.transient == 2048 * (2 * 4096 + 2 * 14336 + 2 * 128) * 2 + 24 * 2048 + 8
    assert budget.block_bytes == 16 * 128 * 1024
    assert budget.num_blocks == (budget.requested - budget.weights - budget.transient) // budget.block_bytes == 3328
    assert budget.num_tokens == 53248 and budget.concurrency(8192) == 6.5


def test_a_larger_step_takes_blocks_away() -> None:
    pools = [kv_budget(LLAMA, 24 * GIB, max_num_batched_tokens=n).num_blocks for n in (512, 2048, 8192, 16384)]
    assert pools == sorted(pools, reverse=True) and pools[0] - pools[-1] == 562


def test_many_requests_with_logits_decide_for_a_small_model() -> None:
    few, many = (
        kv_budget(PRESETS["qwen3-0.6b"], 8 * GIB, max_num_batched_tokens=512, max_num_seqs=n) for n in (1, 512)
    )
    assert many.transient == 1024 * 1024 * 2 + 512 * 151936 * 2 > 2 * few.transient
    capped = kv_budget(PRESETS["qwen3-0.6b"], 8 * GIB, max_num_batched_tokens=512, max_num_seqs=9999)
    assert capped == many  # no step samples more rows than it has


@pytest.mark.parametrize("attention", ["math", "sdpa"])
def test_the_step_stands_at_the_end_of_the_longest_request(attention: str) -> None:
    """`math` has its scores and weights, a number a head for each row and key; SDPA has none of them."""
    tiny, rows = TINY["tiny"], 64
    limits = {"max_num_batched_tokens": rows, "dtype": torch.float32, "attention": attention, "device": CPU}
    short, long = (kv_budget(tiny, GIB, max_model_len=n, **limits) for n in (2048, 4096))
    assert long.transient - short.transient == (attention == "math") * rows * 2048 * 2 * tiny.num_attention_heads * 4


def test_what_vllm_told_a_user_of_qwen3_8b() -> None:
    """Public report of its message: length 40960 needs 5.62 GiB, 4.50 GiB are available, 32768 would fit."""
    budget = KVBudget(int(4.5 * GIB), 1.0, 2048, 0, 0, 16 * 36 * 2 * 8 * 128 * 2, 16)
    assert budget.available == int(4.5 * GIB) and budget.num_tokens == 32768
    budget.require_room_for(32768)
    with pytest.raises(
        ConfigError, match=r"max_model_len 40960 needs 2560 blocks of 16 tokens \(5.6 GiB\) and 2048 fit"
    ):
        budget.require_room_for(40960)


def test_the_refusal_has_every_number_and_a_way_out_that_works() -> None:
    budget = kv_budget(PRESETS["llama-3.1-8b"], 24 * GIB)
    with pytest.raises(ConfigError) as caught:
        budget.require_room_for(131072)
    text = str(caught.value)
    for number in ("131072", "8192 blocks", "16.0 GiB", "3328 fit", "24.0 GiB x 0.9", "15.0 GiB of weights", "53248"):
        assert number in text
    budget.require_room_for(53248)
    with pytest.raises(ConfigError):
        budget.require_room_for(53249)


def test_a_model_that_does_not_fit_at_all() -> None:
    budget = kv_budget(PRESETS["llama-3-70b"], 80 * GIB)
    assert budget.available < 0 and budget.num_blocks == budget.num_tokens == 0
    with pytest.raises(ConfigError, match="leaves 0 B; raise gpu_memory_utilization"):
        budget.require_room_for(1)


def test_the_pool_it_names_can_be_made() -> None:
    """On the CPU: weights, pool and step together are what was asked for, but for less than a block."""
    config = TINY["tiny"]
    budget = kv_budget(config, 32 * 2**20, max_num_batched_tokens=128, dtype=torch.float32, device=CPU)
    store = KVStore(config, budget.num_blocks, 16, dtype=torch.float32, device=CPU)
    weights = Decoder(config, random_weights(config, 0)).nbytes
    assert 0 <= budget.requested - weights - store.nbytes - budget.transient < budget.block_bytes


@pytest.mark.parametrize(
    "change",
    [{"gpu_memory": 0}, {"max_num_batched_tokens": 0}, {"max_num_seqs": -1}, {"max_model_len": 0}, {"block_size": 0},
     {"gpu_memory_utilization": 0.0}, {"gpu_memory_utilization": 1.1}, {"gpu_memory_utilization": float("nan")}],
    ids=str,
)  # fmt: skip
def test_refused(change: dict) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        kv_budget(LLAMA, **({"gpu_memory": GIB} | change))
