"""PeakMemory: numbers worked out by hand, and the counters that would get them wrong."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from lab.measure import memory as module
from lab.measure.memory import PeakMemory

torch.set_num_threads(1)


def block(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8)


def test_only_what_happens_inside_counts() -> None:
    held = block(30)
    burst = block(100)
    del burst
    with PeakMemory(live=[held]) as memory:
        inside = block(10)
    assert (memory.peak_bytes, memory.baseline_bytes, memory.absolute_peak_bytes) == (10, 30, 40)
    assert memory.live_bytes == 10
    del inside
    later = block(1000)
    assert (memory.peak_bytes, memory.live_bytes, memory.absolute_peak_bytes) == (10, 10, 40)  # closed
    del later


def test_used_and_peak() -> None:
    with PeakMemory() as memory:
        blocks = [block(256) for _ in range(4)]
        blocks.clear()
        assert (memory.live_bytes, memory.peak_bytes) == (0, 1024)
    with PeakMemory() as memory:
        a, b = block(256), block(256)
        del a
        assert (memory.live_bytes, memory.peak_bytes) == (256, 512)
    assert memory.absolute_peak_bytes is None  # unknown, not 0
    del b


def test_nested_recorders() -> None:
    with PeakMemory() as outer:
        a = block(100)
        with PeakMemory() as inner:
            b = block(10)
            del a
            c = block(20)
        del b, c
        with PeakMemory() as second:
            d = block(5)
    assert (inner.peak_bytes, inner.live_bytes) == (30, 30)
    assert (second.peak_bytes, second.live_bytes) == (5, 5)
    assert (outer.peak_bytes, outer.live_bytes) == (110, 5)
    del d


def test_entry_tensors_that_die() -> None:
    held = [block(30), block(40)]
    with PeakMemory(live=held) as memory:
        held.pop(0)
        inside = block(25)
    assert (memory.peak_bytes, memory.absolute_peak_bytes, memory.baseline_bytes) == (25, 70, 70)
    del inside


def test_views_and_in_place_operations_count_nothing() -> None:
    before = torch.zeros(64)
    with PeakMemory() as memory:
        x = torch.zeros(64)
        views = [x.view(8, 8), x[3:], x.view(8, 8).t(), x.expand(4, 64), x.detach(), before[1:], before.view(8, 8)]
        x.add_(1).mul_(2)
        before.add_(x)
        torch.add(x, 1, out=before)
        before[:10].fill_(3)
        parts = x.split(16)
        del x
        assert memory.live_bytes == 256  # held by its views
        del views, parts
        assert memory.live_bytes == 0
    assert memory.peak_bytes == 256


@pytest.mark.parametrize(("index", "arrives", "nbytes"), [(slice(3), 9, 0), ([0, 1, 2], 0, 36)])
def test_a_write_to_a_copy_is_seen(index: slice | list[int], arrives: int, nbytes: int) -> None:
    """Through a list of indices `copy_` writes to a tensor of its own (pytorch#137878); a slice is a view."""
    kv, ones = torch.zeros(5, 3), torch.ones(3, 3)
    with PeakMemory() as memory:
        target = kv[index]
        target.copy_(ones)
    assert (kv.sum(), memory.live_bytes) == (arrives, nbytes)


def test_addresses_used_again() -> None:
    with PeakMemory() as memory:
        kept = []
        for i in range(300):
            x = block(64)
            if i % 3 == 0:
                kept.append(x)
        del x
        gc.collect()
        assert memory.live_bytes == 64 * 100
        assert memory.peak_bytes == 64 * 102  # the kept ones, the one before, and the new one
        del kept


def test_storages_that_grow() -> None:
    with PeakMemory() as memory:
        x = torch.empty(4)
        x.resize_(100)
        assert (memory.live_bytes, memory.peak_bytes) == (400, 400)
        del x
        assert memory.live_bytes == 0


def test_tensors_made_from_python_numbers() -> None:
    with PeakMemory() as memory:
        x = torch.tensor([1, 2, 3])
        assert memory.live_bytes == 24
        y = torch.as_tensor([1.0, 2.0])
    assert memory.peak_bytes == 32
    del x, y


def attention_and_mlp() -> torch.Tensor:
    """Composite operations (linear, matmul, SDPA by its math kernel) and temporaries nobody names."""
    x = torch.linspace(0, 1, 6 * 8).view(6, 8)
    weight = torch.linspace(-1, 1, 32 * 8).view(32, 8)
    hidden = F.silu(F.linear(x, weight)) * 2
    q = hidden.view(1, 6, 4, 8).transpose(1, 2)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(6, 6, dtype=torch.bool)).sum()


def measured() -> tuple[int, int]:
    with PeakMemory() as memory:
        out = attention_and_mlp()
    del out
    return memory.peak_bytes, memory.live_bytes


def test_inference_mode_sees_what_composite_operations_allocate() -> None:
    plain = measured()
    with torch.no_grad():
        assert measured() == plain
    with torch.inference_mode():
        assert measured() == plain
    assert plain[0] > 6 * 32 * 4 * 3


def test_fake_tensors_measure_as_real_ones() -> None:
    with torch.inference_mode():
        real = measured()
        with FakeTensorMode():
            assert measured() == real
            with PeakMemory() as memory:
                out = torch.empty(1 << 40, dtype=torch.uint8) + 1  # a tebibyte nobody has
    assert memory.peak_bytes == 2 << 40
    del out


def test_recording_changes_no_bit() -> None:
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            plain = attention_and_mlp()
            with PeakMemory():
                recorded = attention_and_mlp()
            assert torch.equal(plain, recorded)


def double(x: torch.Tensor) -> torch.Tensor:
    return x.mm(x) + 1


def test_what_was_alive_at_the_peak() -> None:
    with PeakMemory() as memory:
        x = torch.ones(8, 8)
        small = torch.ones(2, dtype=torch.bool)
        y = double(x)
        later = torch.ones(1)
    assert [(t.op, t.where, t.shape, t.dtype, t.nbytes) for t in memory.at_peak] == [
        ("aten.ones", "test_memory.test_what_was_alive_at_the_peak", (8, 8), "float32", 256),
        ("aten.mm", "test_memory.double", (8, 8), "float32", 256),
        ("aten.add", "test_memory.double", (8, 8), "float32", 256),
        ("aten.ones", "test_memory.test_what_was_alive_at_the_peak", (2,), "bool", 2),
    ]
    assert sum(t.nbytes for t in memory.at_peak) == memory.peak_bytes == 770
    del x, small, y, later


def test_one_device_only() -> None:
    with PeakMemory(device=torch.device("cpu")) as here, PeakMemory(device=torch.device("meta")) as there:
        a = torch.empty(10, dtype=torch.uint8)
        b = torch.empty(300, dtype=torch.uint8, device="meta")
    assert (here.peak_bytes, there.peak_bytes) == (10, 300)
    del a, b


def test_an_error_inside_closes_the_recorder() -> None:
    memory = PeakMemory()
    with pytest.raises(ZeroDivisionError), memory:
        x = block(10)
        raise ZeroDivisionError
    y = x + 1
    assert (memory.peak_bytes, memory.live_bytes) == (10, 10)
    del x, y


FAULTS = {
    "misses frees": (module._Counter, "_free", lambda self, key: None),
    "counts a dead identity as known": (module._Counter, "_free", lambda self, key: self._change(-1, True)),
    "counts views": (
        module,
        "_tensors",
        lambda tree, real=module._tensors: () if isinstance(tree, tuple) else real(tree),
    ),
    "counts what was there before": (module._Counter, "resize", lambda self, tensor: self.add(tensor, "", "")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_counter_with_a_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [
        test_only_what_happens_inside_counts,
        test_used_and_peak,
        test_views_and_in_place_operations_count_nothing,
        test_addresses_used_again,
    ]
    for check in checks:
        check()
    monkeypatch.setattr(*FAULTS[fault])
    caught = []
    for check in checks:
        try:
            check()
        except AssertionError:
            caught.append(check.__name__)
    assert caught


def test_pytorch_keeps_the_identity_of_a_storage() -> None:
    """What `_Counter` rests on: one Python object a storage; its weak reference dies with it, not before."""
    dead: list[int] = []
    x = torch.empty(10)
    ref = weakref.ref(x.untyped_storage(), lambda _: dead.append(1))
    view = x[2:]
    del x
    gc.collect()
    assert ref() is view.untyped_storage() and not dead
    del view
    assert ref() is None and dead == [1]
