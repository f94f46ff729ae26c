"""Memory that ends: three caps, each enforced by somebody else, all of which raise `OutOfMemory`.

    with MemoryCap(48 * 2**20):        # by us, operation by operation; any device
        model(...)
    with process_cap(48 * 2**20):      # by Linux: its allocator gets no more pages
        model(...)
    with device_cap(device, 48 * 2**20):  # by PyTorch's allocator, on a GPU
        model(...)

Each is in bytes above what is there at entry. On the way out each clears the frames of the failed step: whoever keeps
the exception, as a notebook does with its last one, would otherwise keep every tensor the step had, and the memory
would never come back.
"""

import gc
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import torch

from lab.core.config import require_at_least
from lab.core.errors import LabError
from lab.measure.memory import LiveTensor, PeakMemory
from lab.measure.units import format_bytes
from lab.model.device import limit_memory


class OutOfMemory(LabError, MemoryError):
    """An allocation that a cap refused."""


class MemoryCap(PeakMemory):
    """A `PeakMemory` that raises OutOfMemory when the block has more than `nbytes` alive.

    It is checked when the operation is over, since only then is it known what was allocated: for a moment the bytes
    are there. `process_cap` and `device_cap` refuse them.
    """

    def __init__(self, nbytes: int, device: torch.device | None = None) -> None:
        require_at_least("the cap", nbytes, 0)
        super().__init__(device=device)
        self.nbytes = nbytes

    def _grown(self, tensor: LiveTensor) -> None:
        if self.live_bytes > self.nbytes:
            asked = tensor.nbytes
            raise OutOfMemory(
                f"out of memory: {tensor.op} in {tensor.where} asks for {format_bytes(asked)} ({asked} bytes), "
                f"{format_bytes(self.live_bytes - asked)} are taken and the cap is {format_bytes(self.nbytes)}; "
                "compute fewer tokens at once or raise the cap"
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if isinstance(error, OutOfMemory):
            traceback.clear_frames(trace)


@contextmanager
def process_cap(nbytes: int) -> Iterator[None]:
    """The process may take `nbytes` of data more (RLIMIT_DATA, which Linux enforces for all private memory since 4.7).

    What the process has freed and keeps counts as taken already but can be used again: for an exact cap start Python
    with MALLOC_MMAP_THRESHOLD_=65536 in its environment. Raises LabError where there is no Linux.
    """
    if sys.platform != "linux":
        raise LabError(f"process_cap needs Linux, this is {sys.platform}; use MemoryCap, which works everywhere")
    import resource

    require_at_least("the cap", nbytes, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + nbytes, hard))
    try:
        with _as_out_of_memory():
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextmanager
def device_cap(device: torch.device, nbytes: int) -> Iterator[None]:
    """PyTorch's allocator on the GPU may take `nbytes` more. Raises LabError on the CPU, which has no such limit."""
    require_at_least("the cap", nbytes, 0)
    gc.collect()  # what earlier runs left would be given back inside, and make the cap a wider one
    with limit_memory(device, nbytes), _as_out_of_memory():
        yield


@contextmanager
def _as_out_of_memory() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        message = refusal(error)
        if message is None:
            raise
        traceback.clear_frames(error.__traceback__)
        raise OutOfMemory(f"out of memory: {message}; compute fewer tokens at once or raise the cap") from None


def refusal(error: BaseException) -> str | None:
    """What the allocator said, in one line, if `error` is its refusal; None for any other error."""
    text = str(error).split("\n")[0]
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in text:
        return text.rpartition("DefaultCPUAllocator: ")[2].rstrip(".") or type(error).__name__
    return None


def _data_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise LabError("/proc/self/status has no VmData; use MemoryCap, which works everywhere")
