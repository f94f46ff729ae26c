"""A cap refuses what is above it, and nothing else; what was refused is given back."""

import subprocess
import sys
import weakref
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch

from lab.core.errors import LabError
from lab.measure import cap as module
from lab.measure.cap import MemoryCap, OutOfMemory, device_cap, process_cap, refusal
from lab.measure.memory import PeakMemory

MIB = 2**20


def mebibytes(n: int) -> torch.Tensor:
    return torch.empty(n * MIB, dtype=torch.uint8)


def test_at_the_cap_and_above() -> None:
    before = mebibytes(3)  # not of the block
    with MemoryCap(5 * MIB) as cap:
        held = mebibytes(2)
        for _ in range(3):
            mebibytes(3)  # freed each time
        with pytest.raises(OutOfMemory, match="asks for 4.0 MiB .4194304 bytes., 2.0 MiB are taken and the cap is 5.0"):
            mebibytes(4)
        assert cap.live_bytes == held.nbytes  # the refused bytes are back,
        again = mebibytes(3)  # and the next that fits passes
    assert cap.peak_bytes == 6 * MIB and before.nbytes + again.nbytes == 6 * MIB
    mebibytes(9)  # out of the block there is no cap


def test_growing_in_place_is_seen() -> None:
    with MemoryCap(2 * MIB):
        grows = mebibytes(1)
        grows.resize_(2 * MIB)
        with pytest.raises(OutOfMemory, match="aten.empty"):
            grows.resize_(3 * MIB)


def test_the_message_names_operation_and_place() -> None:
    a = torch.ones(64, 64)
    with MemoryCap(100), pytest.raises(OutOfMemory) as caught:
        a @ a
    text = str(caught.value)
    assert "aten.mm in test_cap.test_the_message" in text and "\n" not in text
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, LabError)


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA caps memory on Linux only")
def test_the_kernel_refuses() -> None:
    with process_cap(64 * MIB):
        mebibytes(16)
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            mebibytes(1024)  # inside, it is still the allocator's own error
    mebibytes(1024)  # the limit is as before


def step() -> torch.Tensor:
    held = mebibytes(4)
    return held + mebibytes(1024)[:1]


def caps() -> list[AbstractContextManager[object]]:
    return [MemoryCap(64 * MIB), *([process_cap(64 * MIB)] if sys.platform == "linux" else [])]


@pytest.mark.parametrize("clears", [True, False])
def test_who_keeps_the_exception_keeps_no_tensor(monkeypatch: pytest.MonkeyPatch, clears: bool) -> None:
    if not clears:  # planted: what a notebook does to the memory of an error that nobody caught
        monkeypatch.setattr(module.traceback, "clear_frames", lambda trace: None)
    for cap in caps():
        with PeakMemory() as memory:
            with pytest.raises(OutOfMemory) as caught, cap:
                step()
            assert (memory.live_bytes == 0) == clears, caught.value


def test_what_earlier_runs_left_is_gone_before_the_gpu_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Run:
        def __init__(self) -> None:
            self.itself, self.tensor = self, mebibytes(1)

    gone = weakref.ref(Run().tensor.untyped_storage())
    found: list[object] = []
    monkeypatch.setattr(module, "limit_memory", lambda device, nbytes: nullcontext(found.append(gone())))
    assert gone() is not None
    with device_cap(torch.device("cuda", 0), MIB):
        assert found == [None]


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), process_cap(64 * MIB):
        1 / 0  # noqa: B018
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), process_cap(64 * MIB):
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert refusal(torch.OutOfMemoryError("CUDA out of memory. Tried\nmore")) == "CUDA out of memory. Tried"
    assert refusal(MemoryError()) == "MemoryError" and refusal(RuntimeError("shape")) is None


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="the cap is -1"):
        MemoryCap(-1)
    for cap in (process_cap(-1), device_cap(torch.device("cpu"), -1)):
        with pytest.raises(LabError, match="the cap is -1"), cap:
            pass
    with pytest.raises(LabError, match="has no limit"), device_cap(torch.device("cpu"), 1):
        pass
    monkeypatch.setattr(module.sys, "platform", "darwin")
    with pytest.raises(LabError, match="needs Linux"), process_cap(1):
        pass


def test_importing_it_needs_no_linux() -> None:
    code = "import sys; sys.modules['resource'] = None; import lab.measure.cap"
    subprocess.run([sys.executable, "-c", code], check=True)
