"""The engine's swap under the checker: a run is traced onto the stream model, and a run is made with late copies.

What PyTorch dispatches on the two KV pools is recorded: a run of the engine on the CPU, with its copies on a stream of
their own. Rows that are indexed are known, so only blocks that are really shared can collide.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from lab.core import SamplingParams
from lab.engine import Engine
from lab.engine.swap import SwappingExecutor
from lab.model.device import SideStream
from lab.model.kv_store import KVStore
from lab.streams.races import Hazard
from lab.streams.runtime import MAIN, Place
from lab.streams_torch.check.tracer import Tracer

COPIES = "copies"


class RecordedSide(SideStream):
    """Tells a tracer what it does, beside doing it."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(torch.device("cpu"))
        self.tracer = tracer

    def fork(self) -> None:
        self.tracer.runtime.wait_stream(MAIN, on=COPIES)

    def copy(self, target: Tensor, source: Tensor) -> None:
        with self.tracer.on(COPIES):
            target.copy_(source, non_blocking=True)

    def join(self) -> None:
        self.tracer.runtime.wait_stream(COPIES, on=MAIN)


class LateSide(SideStream):
    """Makes its copies in a thread, each `delay` seconds late. Kernels of the CPU have run when they return, so there
    is nothing to do at a fork."""

    def __init__(self, delay: float) -> None:
        super().__init__(torch.device("cpu"))
        self.delay = delay
        self.thread = ThreadPoolExecutor(1)
        self.pending: list[Future[None]] = []

    def copy(self, target: Tensor, source: Tensor) -> None:
        self.pending.append(self.thread.submit(self.copy_late, target, source))

    @torch.inference_mode()
    def copy_late(self, target: Tensor, source: Tensor) -> None:
        time.sleep(self.delay)
        target.copy_(source)

    def join(self) -> None:
        for copy in self.pending:
            copy.result()
        self.pending.clear()


def trace_swaps(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    sampling: SamplingParams,
    side_type: type[RecordedSide] = RecordedSide,
) -> list[Hazard]:
    """Serve the prompts on an engine that swaps, and return what could go wrong between its two streams.

    That the host waits for every token it samples isn't counted: it hides a missing edge after most steps, not all.
    """
    executor = engine.loop.executor
    assert isinstance(executor, SwappingExecutor), "the engine doesn't swap: give it Swap and swap_space_bytes"
    tracer = Tracer(lambda x: None)
    stores: dict[Place, KVStore] = {"device": executor.store, "pinned": executor.host}
    for where, store in stores.items():
        for layer, (keys, values) in enumerate(zip(store.keys, store.values)):
            tracer.adopt(keys, f"{where} keys {layer}", where)
            tracer.adopt(values, f"{where} values {layer}", where)
    executor.side = side_type(tracer)
    with tracer:
        engine.generate(prompts, sampling)
    return tracer.runtime.trace.hazards
