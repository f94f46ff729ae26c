"""A `torch.cuda` on the CPU, whose streams are never behind: it finds calls that can't be made, and no missing wait."""

import time
from collections import defaultdict
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode


class Event:
    def __init__(self, enable_timing: bool = False) -> None:
        self.at: float | None = None

    def record(self, stream: "Stream | None" = None) -> None:
        assert stream is None or isinstance(stream, Stream)
        self.at = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds; never 0, as on a device."""
        assert self.at is not None and end.at is not None
        return max(end.at - self.at, 1e-6) * 1e3


class Stream:
    def wait_event(self, event: Event) -> None:
        assert isinstance(event, Event)

    def wait_stream(self, other: "Stream") -> None:
        assert isinstance(other, Stream)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        pass


class CUDAGraph:
    def replay(self) -> None:
        pass


class CpuCuda:
    """The names of `torch.cuda` that lab's modules for a GPU use; any other raises AttributeError."""

    Event, Stream, CUDAGraph = Event, Stream, CUDAGraph

    @contextmanager
    def stream(self, stream: Stream):
        assert isinstance(stream, Stream)
        yield

    @contextmanager
    def graph(self, graph: CUDAGraph, stream: Stream):
        assert isinstance(stream, Stream)
        yield

    def memory_stats(self):
        return defaultdict(int)

    def current_stream(self, device=None):
        return Stream()

    def is_available(self):
        return True

    def device_count(self):
        return 1

    def current_device(self):
        return 0

    def _sleep(self, cycles: int) -> None:
        assert isinstance(cycles, int)

    def synchronize(self, device=None) -> None:
        pass

    def empty_cache(self) -> None:
        pass

    def reset_peak_memory_stats(self) -> None:
        pass

    def memory_reserved(self) -> int:
        return 0

    def max_memory_reserved(self) -> int:
        return 0


class OnCpu(TorchFunctionMode):
    """Tensors for "cuda" are made on the CPU, and none is pinned."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        kwargs.pop("pin_memory", None)
        if torch.device(kwargs.get("device") or "cpu").type == "cuda":
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


@contextmanager
def cpu_cuda():
    def record_stream(x: torch.Tensor, stream: Stream) -> None:
        assert isinstance(stream, Stream)

    with patch.object(torch, "cuda", CpuCuda()), patch.object(torch.Tensor, "record_stream", record_stream), OnCpu():
        yield
