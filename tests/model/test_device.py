"""The guarded module: the one place of torch.cuda, what it promises on the CPU, the dtype of each capability."""

import ast
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.cuda import memory

from lab.core.errors import LabError
from lab.model import device as dev

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)


def cuda_uses(source: str) -> list[int]:
    """Lines that reach for `torch.cuda` by attribute, import or `.cuda()`; text and comments do not count."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "cuda":
            setting = isinstance(node.value, ast.Attribute) and node.value.attr == "backends"  # torch.backends.cuda
            lines += [] if setting else [node.lineno]
        elif isinstance(node, ast.Import):
            lines += [node.lineno for name in node.names if name.name.startswith("torch.cuda")]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [name.name for name in node.names]
            if module.startswith("torch.cuda") or (module == "torch" and "cuda" in names):
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.synchronize()",
        "import torch.cuda.nvtx",
        "from torch import cuda",
        "from torch.cuda import Event",
        "x.cuda()",
    ],
)
def test_the_lint_sees(line: str) -> None:
    assert cuda_uses(f"import torch\n{line}\n") == [2]


NEED_A_GPU = {  # nothing in them runs on the CPU: who calls them asks for a GPU first, and gets an error there
    "lab/checks/stream_costs.py",
    "lab/checks/stream_overlap.py",
    "lab/streams_torch/cuda.py",
    "lab/streams_torch/profile.py",
}

NEED_NO_DEVICE = {
    "lab/checks/sanitizer.py",  # the sanitizer's bookkeeping, fed by hand
    "lab/streams_torch/check/standin.py",  # puts other things in place of its names
}


def test_only_the_guarded_module_touches_torch_cuda() -> None:
    found = {
        str(path.relative_to(ROOT)): uses
        for path in sorted((ROOT / "lab").rglob("*.py"))
        if (uses := cuda_uses(path.read_text()))
    }
    assert found.keys() == {"lab/model/device.py"} | NEED_A_GPU | NEED_NO_DEVICE


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name of torch.cuda raises, is_available() says no: a CPU build at its strictest."""

    class Guard:
        @staticmethod
        def is_available() -> bool:
            return False

        def __getattr__(self, name: str):
            raise AssertionError(f"torch.cuda.{name} was touched on the CPU")

    monkeypatch.setattr(torch, "cuda", Guard())


@pytest.mark.usefixtures("no_cuda")
def test_the_cpu_needs_nothing_of_torch_cuda() -> None:
    device = dev.resolve_device(None)
    assert device == CPU
    assert dev.capability(device) is None
    assert dev.parse_dtype(None, device) is torch.float32
    assert dev.device_name(device)
    assert dev.cuda_version(device) is None
    dev.synchronize(device)
    dev.reset_peak_memory(device)
    dev.empty_cache(device)
    assert (dev.total_memory(device) or 0) > 2**28
    assert dev.allocator_stats(device) is None  # not 0


@pytest.mark.usefixtures("no_cuda")
def test_the_cpu_timer() -> None:
    timer = dev.Timer(CPU)
    timer.start()
    time.sleep(0.02)
    timer.stop()
    assert 20 <= timer.elapsed_ms() < 2_000

    timer = dev.Timer(CPU, time.process_time_ns)  # sleeping costs no processor time
    timer.start()
    time.sleep(0.05)
    timer.stop()
    assert timer.elapsed_ms() < 25


def test_a_timer_read_too_early() -> None:
    timer = dev.Timer(CPU)
    with pytest.raises(LabError, match="before start"):
        timer.elapsed_ms()
    timer.start()
    with pytest.raises(LabError, match="before start"):
        timer.elapsed_ms()


def test_an_event_read_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    class Event:
        done = False

        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def query(self) -> bool:
            return Event.done

        def elapsed_time(self, end: "Event") -> float:
            assert end is not self
            return 1.5

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(record_event=lambda event: event))
    timer = dev.Timer(CUDA)
    timer.start()
    timer.stop()
    with pytest.raises(LabError, match="synchronize"):
        timer.elapsed_ms()
    Event.done = True
    assert timer.elapsed_ms() == 1.5


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[int, int]:
    """A GPU of the given capability that claims bfloat16, as PyTorch does when it counts emulation."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: request.param)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Pretend GPU")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)
    return request.param


@pytest.mark.parametrize(
    ("gpu", "dtype"),
    [
        ((6, 1), torch.float16),
        ((7, 0), torch.float16),
        ((7, 5), torch.float16),
        ((8, 0), torch.bfloat16),
        ((8, 9), torch.bfloat16),
        ((12, 0), torch.bfloat16),
    ],
    indirect=["gpu"],
)
def test_dtype_of_a_capability(gpu: tuple[int, int], dtype: torch.dtype) -> None:
    assert dev.parse_dtype(None, CUDA) is dtype
    assert dev.parse_dtype("auto", CUDA) is dtype
    assert dev.parse_dtype("float32", CUDA) is torch.float32


@pytest.mark.parametrize("gpu", [(7, 5)], indirect=True)
def test_a_dtype_the_device_lacks(gpu: tuple[int, int]) -> None:
    with pytest.raises(LabError, match=r"'bfloat16'.*8\.0.*Pretend GPU has 7\.5.*float64, float32, float16$") as error:
        dev.parse_dtype("bfloat16", CUDA)
    assert "\n" not in str(error.value)
    with pytest.raises(LabError):
        dev.parse_dtype(torch.bfloat16, CUDA)


@pytest.mark.parametrize("name", ["int8", "half", "", "torch.float32"])
def test_an_unknown_dtype(name: str) -> None:
    with pytest.raises(LabError, match="unknown; there is float64, float32, bfloat16, float16"):
        dev.parse_dtype(name, CPU)


def test_dtypes_of_the_cpu() -> None:
    assert [dev.parse_dtype(name, CPU) for name in dev.DTYPES] == list(dev.DTYPES.values())
    assert dev.parse_dtype(torch.float16, CPU) is torch.float16
    assert dev.dtype_name(torch.bfloat16) == "bfloat16"


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gpu", "cuda:x", "mps", "meta"):
        with pytest.raises(LabError, match=f"'{name}'.*ask for 'cpu'"):
            dev.resolve_device(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(LabError, match="no CUDA device"):
        dev.resolve_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert dev.resolve_device(None) == torch.device("cuda", 1)
    assert dev.resolve_device("cuda:0") == CUDA
    with pytest.raises(LabError, match="sees 2: 'cuda:0' to 'cuda:1'"):
        dev.resolve_device("cuda:2")


def test_disable_tf32() -> None:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        dev.disable_tf32()
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cudnn.allow_tf32
        assert not torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def test_what_the_allocator_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what it gave: of a block of 12 MiB 11 are not worth splitting off."""
    answers = {"memory_allocated": 12, "memory_reserved": 20, "memory_stats": {"requested_bytes.all.peak": 11}}
    for name, answer in {**answers, "mem_get_info": (70, 100), "synchronize": None}.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, answer=answer: answer)
    assert dev.allocator_stats(CUDA) == dev.AllocatorStats(12, 11, 20, 30)
    assert "requested_bytes.{all,large_pool,small_pool}.{current,peak" in (memory.memory_stats.__doc__ or "")
