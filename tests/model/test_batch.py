"""A batch laid out by hand, the KV store under it, and what is refused."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from lab.core.errors import LabError
from lab.model.batch import Batch, Segment
from lab.model.kv_store import KVStore, block_index
from lab.model.tiny import TINY

CPU = torch.device("cpu")
CONFIG = TINY["tiny"]


def test_layout() -> None:
    """Blocks of 4: a decode at 9, a chunk of 6 from 3 on, a whole prompt of 2."""
    batch = Batch.build(
        [
            Segment([50], 9, (7, 1, 4), True),
            Segment([10, 11, 12, 13, 14, 15], 3, (2, 0, 9, 8), False),  # one block more than it needs
            Segment([20, 21], 0, [5], True),
        ],
        block_size=4,
        device=CPU,
        num_blocks=10,
    )
    assert batch.token_ids.tolist() == [50, 10, 11, 12, 13, 14, 15, 20, 21]
    assert batch.positions.tolist() == [9, 3, 4, 5, 6, 7, 8, 0, 1]
    assert batch.slots.tolist() == [4 * 4 + 1, 2 * 4 + 3, 0, 1, 2, 3, 9 * 4, 5 * 4, 5 * 4 + 1]
    assert batch.query_lens == (1, 6, 2)
    assert batch.context_lens == (10, 9, 2)
    assert batch.block_tables == ((7, 1, 4), (2, 0, 9), (5,))
    assert batch.logit_rows.tolist() == [0, 8]
    assert batch.rows == (slice(0, 1), slice(1, 7), slice(7, 9))
    assert batch.cu_query_lens.tolist() == [0, 1, 7, 9]
    assert batch.cu_kv_lens.tolist() == [0, 10, 19, 21]
    assert batch.kv_lens.tolist() == [10, 9, 2]
    assert batch.block_table.tolist() == [[7, 1, 4], [2, 0, 9], [5, 0, 0]]
    assert batch.device == CPU
    for name in ("token_ids", "positions", "slots", "logit_rows"):
        assert getattr(batch, name).dtype == torch.int64
    for name in ("cu_query_lens", "cu_kv_lens", "kv_lens", "block_table"):
        assert getattr(batch, name).dtype == torch.int32


def test_no_row_is_wanted() -> None:
    batch = Batch.build([Segment([1, 2], 0, (0,), False)], 4, CPU)
    assert batch.logit_rows.tolist() == [] and batch.logit_rows.dtype == torch.int64


def test_a_changed_batch_forgets_what_it_had_made() -> None:
    batch = Batch.build([Segment([1, 2], 2, (0,), True)], 4, CPU)
    assert batch.kv_lens.tolist() == [4]
    shorter = replace(batch, context_lens=(3,))
    assert shorter.kv_lens.tolist() == [3]


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([], "at least one segment; it has 0"),
        ([Segment([], 0, (0,), True)], "0 tokens at start 0"),
        ([Segment([1], -1, (0,), True)], "1 tokens at start -1"),
        ([Segment([1, 2], 3, (0,), True)], "ends at token 5 and its 1 blocks of 4 hold 4; allocate 2 blocks first"),
        ([Segment([1], 0, (), True)], "its 0 blocks of 4 hold 0"),
        ([Segment([1], 0, (0,), True), Segment([1], 0, (10,), True)], "blocks 10 to 10; blocks go from 0 to 9"),
        ([Segment([1], 0, (10, 3), True)], "blocks 3 to 10; blocks go from 0 to 9"),
        ([Segment([1], 0, (3, -1), True)], "blocks -1 to 3; blocks go from 0 to 9"),
    ],
)
def test_refused(segments: list[Segment], message: str) -> None:
    with pytest.raises(LabError, match=message) as caught:
        Batch.build(segments, 4, CPU, num_blocks=10)
    assert "\n" not in str(caught.value)


def test_what_was_checked_cannot_be_changed() -> None:
    segment = Segment([1], 0, (0,), True)
    for checked in (segment, Batch.build([segment], 4, CPU)):
        with pytest.raises(FrozenInstanceError):
            checked.token_ids = [2]  # type: ignore[misc]


def test_a_block_beyond_the_pool_is_known_only_with_its_size() -> None:
    segment = Segment([1], 0, (10,), True)
    assert Batch.build([segment], 4, CPU).slots.tolist() == [40]
    Batch.build([segment], 4, CPU, num_blocks=11)
    with pytest.raises(LabError, match="blocks go from 0$"):
        Batch.build([Segment([1], 0, (-2,), True)], 4, CPU)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bytes_of_the_store(dtype: torch.dtype) -> None:
    store = KVStore(CONFIG, 7, 16, dtype=dtype, device=CPU)
    assert KVStore.bytes_per_token(CONFIG, dtype) == 2 * 4 * 2 * 32 * dtype.itemsize  # K and V, layers, heads, head_dim
    assert store.nbytes == 7 * 16 * KVStore.bytes_per_token(CONFIG, dtype)
    assert store.nbytes == sum(p.untyped_storage().nbytes() for p in (*store.keys, *store.values))
    assert len(store.keys) == len(store.values) == 4
    assert store.keys[0].shape == (7, 16, 2, 32)


@pytest.mark.parametrize("table", [(2, 3, 4), (4, 2, 3), (3,)])
def test_what_is_written_is_read(table: tuple[int, ...]) -> None:
    store = KVStore(CONFIG, 6, 4, dtype=torch.float32, device=CPU)
    n = 4 * len(table) - 1
    slots = torch.tensor([table[i // 4] * 4 + i % 4 for i in range(n)])
    k, v = torch.randn(2, n, 2, 32)
    store.write(1, slots, k, v)
    for length in (n, 1):
        keys, values = store.read(1, table, length)
        assert torch.equal(keys, k[:length]) and torch.equal(values, v[:length])
    assert not store.keys[0].any() and not store.values[3].any()  # other layers
    untouched = sorted(set(range(6)) - set(table))
    assert not store.keys[1][untouched].any()
    is_view = keys.untyped_storage().data_ptr() == store.keys[1].untyped_storage().data_ptr()
    assert is_view == (table != (4, 2, 3))


def test_block_index() -> None:
    assert block_index((3, 4, 5), CPU) == slice(3, 6)
    assert block_index([8], CPU) == slice(8, 9)
    scattered = block_index((3, 5, 4), CPU)
    assert isinstance(scattered, torch.Tensor) and scattered.tolist() == [3, 5, 4]


@pytest.mark.parametrize(("num_blocks", "block_size", "name"), [(0, 16, "num_blocks is 0"), (4, 0, "block_size is 0")])
def test_a_store_of_no_size(num_blocks: int, block_size: int, name: str) -> None:
    with pytest.raises(LabError, match=name):
        KVStore(CONFIG, num_blocks, block_size, dtype=torch.float32, device=CPU)
    smallest = KVStore(CONFIG, 1, 1, dtype=torch.float32, device=CPU)
    assert smallest.nbytes == KVStore.bytes_per_token(CONFIG, torch.float32)


def test_no_copy_waits_for_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits would end the step before: an engine that has lost an edge of its swap would then be right by luck."""
    options: list[dict[str, bool]] = []
    monkeypatch.setattr(torch.Tensor, "to", lambda x, device, **given: options.append(given) or x)
    batch = Batch.build([Segment([1, 2], 0, [3], True), Segment([5], 16, [4, 2], True)], 16, torch.device("cuda", 0))
    assert batch.kv_lens.numel() == batch.block_table.shape[0] == len(batch.kv_blocks) == 2
    assert batch.cu_query_lens.numel() == batch.cu_kv_lens.numel() == 3
    assert len(options) == 9 and all(given == {"non_blocking": True} for given in options)
