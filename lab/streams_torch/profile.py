"""What the device really did, read from a Kineto trace: kernels and copies with their streams, times and bytes."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from lab.streams.trace import Work

DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")  # categories of a Kineto trace


@contextmanager
def profiled(found: list[Work]) -> Iterator[None]:
    """Profile what the device does inside, and put it into `found` at the end. The device must be idle at both."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        yield
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        found += read(json.loads(path.read_text()))


def read(trace: dict[str, Any]) -> list[Work]:
    """The device's work in a Kineto trace, by start."""
    works = [
        Work(
            event["name"],
            int(event["args"]["stream"]),
            float(event["ts"]),
            float(event["dur"]),
            int(event["args"].get("bytes", 0)),
        )
        for event in trace["traceEvents"]
        if event.get("cat") in DEVICE_WORK
    ]
    return sorted(works, key=lambda work: work.start)
