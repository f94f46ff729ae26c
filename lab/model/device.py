"""The device: which one, what it can do, its memory and its clock. The one module of lab that may touch `torch.cuda`.

On a CPU build of PyTorch `torch.cuda.synchronize()` and `torch.cuda.Event()` raise while `memory_allocated()` quietly
answers 0, so everything else in lab asks here; `tests/model/test_device.py` holds that. On the CPU nothing below
touches `torch.cuda` beyond `is_available()`, and what the CPU has no figure for is None, never 0.
"""

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lab.core.errors import LabError

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
BFLOAT16_CAPABILITY = (8, 0)  # Ampere: the first with bfloat16 arithmetic


class DeviceError(LabError, ValueError):
    """A device or a dtype that is not there, or an event read before it is done."""


def resolve_device(name: str | torch.device | None = None) -> torch.device:
    """The device called `name` ("cpu", "cuda", "cuda:1"); None is the GPU where there is one, else the CPU.

    Raises DeviceError for a device this machine lacks or that lab does not run on.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise DeviceError(f"device {name!r} is not a device; ask for 'cpu' or 'cuda'") from None
    if device.type not in ("cpu", "cuda"):
        raise DeviceError(f"device {name!r} is not supported; ask for 'cpu' or 'cuda'")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise DeviceError(f"device {name!r} was asked for and PyTorch sees no CUDA device; ask for 'cpu'")
        index = torch.cuda.current_device() if device.index is None else device.index
        if index >= count:
            raise DeviceError(f"device {name!r} was asked for and PyTorch sees {count}: 'cuda:0' to 'cuda:{count - 1}'")
        device = torch.device("cuda", index)
    return device


def capability(device: torch.device) -> tuple[int, int] | None:
    """CUDA compute capability, (7, 5) for a T4; None on the CPU."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def supported_dtypes(device: torch.device) -> tuple[str, ...]:
    """The dtypes the device computes in. Emulated ones do not count: PyTorch's is_bf16_supported() says yes on a T4."""
    has = capability(device)
    return tuple(name for name in DTYPES if name != "bfloat16" or has is None or has >= BFLOAT16_CAPABILITY)


def parse_dtype(name: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    """The dtype called `name`; None or "auto" is bfloat16 from capability 8.0, float16 below it, float32 on the CPU.

    Raises DeviceError for a name that is no dtype of lab's and for a dtype the device has no arithmetic for.
    """
    if isinstance(name, torch.dtype):
        name = dtype_name(name)
    has, there = capability(device), supported_dtypes(device)
    if name is None or name == "auto":
        name = "float32" if has is None else "bfloat16" if has >= BFLOAT16_CAPABILITY else "float16"
    if name not in DTYPES:
        raise DeviceError(f"dtype {name!r} is unknown; there is {', '.join(there)}")
    if name not in there:
        raise DeviceError(
            f"dtype {name!r} needs compute capability 8.0, {device_name(device)} has {'.'.join(map(str, has or ()))}; "
            f"there is {', '.join(there)}"
        )
    return DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """torch.float16 -> "float16"."""
    return str(dtype).removeprefix("torch.")


def device_name(device: torch.device) -> str:
    """What the maker calls it: "Tesla T4", "Intel(R) Xeon(R) CPU @ 2.20GHz"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()


def cpu_name() -> str:
    """The processor's model as the system tells it, else its architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()


def cuda_version(device: torch.device) -> str | None:
    """CUDA version PyTorch was built for; None on the CPU."""
    return torch.version.cuda if device.type == "cuda" else None


def synchronize(device: torch.device) -> None:
    """Wait for everything launched on the device. The CPU is never behind."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class SideStream:
    """A second stream, for copies beside what the device's current stream computes, and the two edges between them.

    On the CPU, where nothing runs behind, a copy is made at once and there is nothing to wait for.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def fork(self) -> None:
        """Copies from here on wait for all that was enqueued on the current stream."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Enqueue a copy. Both must outlive it, and a copy from or to host memory is asynchronous if that is pinned."""
        if self._stream is None:
            target.copy_(source)
        else:
            with torch.cuda.stream(self._stream):
                target.copy_(source, non_blocking=True)

    def join(self) -> None:
        """What is enqueued on the current stream from here on waits for all copies."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)


def total_memory(device: torch.device) -> int | None:
    """Bytes of the device's memory; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf, macOS not every name
        return None


@dataclass(frozen=True)
class AllocatorStats:
    """Bytes in PyTorch's CUDA allocator: allocated <= reserved <= device_used, three numbers called "GPU memory"."""

    allocated: int  # in tensors alive now
    peak_requested: int  # most asked for since the last reset_peak_memory: a block may be up to 1 MiB larger
    reserved: int  # held by the caching allocator, free blocks included
    device_used: int  # taken on the device by every process, the CUDA context included (what nvidia-smi shows)


def allocator_stats(device: torch.device) -> AllocatorStats | None:
    """The CUDA allocator's figures. None on the CPU, which has none: count storages with `lab.measure.memory`."""
    if device.type != "cuda":
        return None
    synchronize(device)
    free, total = torch.cuda.mem_get_info(device)
    return AllocatorStats(
        allocated=torch.cuda.memory_allocated(device),
        peak_requested=torch.cuda.memory_stats(device)["requested_bytes.all.peak"],
        reserved=torch.cuda.memory_reserved(device),
        device_used=total - free,
    )


def reset_peak_memory(device: torch.device) -> None:
    """Start the peaks of `allocator_stats` from what is alive now. Nothing to do on the CPU."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def empty_cache(device: torch.device) -> None:
    """Give the allocator's free blocks back to the device. Drop the names first, then gc.collect(), then this."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


@contextmanager
def limit_memory(device: torch.device, nbytes: int) -> Iterator[None]:
    """PyTorch's allocator may take `nbytes` from the GPU beside what it has reserved. Raises DeviceError on the CPU."""
    if device.type != "cuda":
        raise DeviceError(f"the allocator of {device} has no limit; count with lab.measure.cap.MemoryCap")
    torch.cuda.empty_cache()
    fraction = (torch.cuda.memory_reserved(device) + nbytes) / torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, fraction), device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)


def disable_tf32() -> None:
    """float32 products in float32: TF32 keeps 10 bits of the mantissa, so no equality check may run with it."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


class Timer:
    """Milliseconds between `start()` and `stop()`: a pair of CUDA events on a GPU, the clock `cpu_clock_ns` on the CPU.

    A GPU runs behind the host, so the host's clock would time the launch (matmul 4096^2: a tenth of the truth or less).
    Events are recorded on the current stream; `elapsed_ms()` raises DeviceError until the device has passed the second:
    `synchronize(device)` first, once per sample, not once per operation, which would forbid the overlap being timed.
    """

    def __init__(self, device: torch.device, cpu_clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._device = device
        self._now = cpu_clock_ns
        self._marks: list[Any] = [None, None]

    def start(self) -> None:
        self._marks = [self._mark(), None]

    def stop(self) -> None:
        self._marks[1] = self._mark()

    def elapsed_ms(self) -> float:
        begin, end = self._marks
        if begin is None or end is None:
            raise DeviceError("the timer was read before start() and stop(); call both, then elapsed_ms()")
        if self._device.type != "cuda":
            return float(end - begin) / 1e6
        if not end.query():
            raise DeviceError("the timer was read before the device was done; call synchronize(device) first")
        return float(begin.elapsed_time(end))

    def _mark(self) -> Any:  # a CUDA event, or nanoseconds
        if self._device.type != "cuda":
            return self._now()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        return torch.cuda.current_stream(self._device).record_event(event)
