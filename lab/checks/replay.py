"""A load on the engine by the clock of a cost model: real tokens and bytes, and times that are the same on any machine.

What is scheduled depends on the clock, so a run by the wall clock is never the same twice. Here the model computes each
plan, and the clock moves by what the cost model says: step for step the run that `simulate` makes of the same load.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lab.core import Loop, Request, Scheduler, StepPlan, Trace
from lab.core.errors import ConfigError
from lab.engine.engine import make_executor
from lab.engine.executor import TorchExecutor
from lab.engine.swap import SwappingExecutor
from lab.measure.memory import PeakMemory
from lab.model.attention import AttentionBackend
from lab.model.decoder import Decoder
from lab.model.device import SideStream
from lab.model.kv_store import first_run
from lab.sim.cost_model import CostModel
from lab.sim.load import Load
from lab.sim.simulate import VirtualClock


@dataclass(frozen=True)
class Replay:
    """What came of a run: its trace in virtual seconds, all tokens by request, and bytes.

    `step_bytes` is the most that a counted step held beside weights and KV pools, `bytes_out` what was swapped out.
    """

    trace: Trace
    tokens: Mapping[str, list[int]]
    step_bytes: int
    bytes_out: int


def replay(
    load: Load,
    scheduler: Scheduler,
    decoder: Decoder,
    attention: AttentionBackend,
    cost: CostModel,
    side: SideStream | None = None,
) -> Replay:
    """Run the load to its end; `side` takes the place of the stream on which a scheduler that swaps has its copies.

    Raises ConfigError for a `side` without blocks on the host to swap to.
    """
    executor = make_executor(decoder, scheduler.cache, attention)
    if side is not None:
        if not isinstance(executor, SwappingExecutor):
            raise ConfigError("nothing is swapped: give the scheduler's cache num_cpu_blocks")
        executor.side = side
    clock = VirtualClock()
    paced = PacedExecutor(executor, cost, clock)
    requests = list(with_tokens(load, decoder.config.vocab_size))
    trace = Loop(scheduler, paced, clock).run(requests)
    tokens = {request.request_id: request.output_token_ids for request in requests}
    return Replay(trace, tokens, paced.step_bytes, getattr(executor, "bytes_out", 0))


def with_tokens(load: Load, vocab_size: int) -> Iterator[Request]:
    """The load's requests with random prompts, the same for the same request."""
    for request in load.requests():
        tokens = random.Random(request.request_id).choices(range(vocab_size), k=request.num_prompt_tokens)
        yield Request(request.request_id, tokens, request.sampling, arrival=request.arrival)


class PacedExecutor:
    """A model's tokens at a cost model's pace.

    Counting bytes slows a step down tenfold, so `step_bytes` is taken of the steps that none before them was as large
    as in both tokens and blocks of the longest request whose blocks are not consecutive: attention copies those. Steps
    of decodes alone, some of which have their KV copied together, are compared with their like. The scores of the
    backend `math`, which grow with any context, are not looked for.
    """

    def __init__(self, executor: TorchExecutor, cost: CostModel, clock: VirtualClock) -> None:
        self.executor = executor
        self.cost = cost
        self.clock = clock
        self.step_bytes = 0
        self._counted: dict[bool, list[tuple[int, int]]] = {False: [], True: []}  # by whether all are decodes

    def execute(self, plan: StepPlan, scheduler: Scheduler) -> Mapping[str, int]:
        self.clock.advance(self.cost.seconds(plan, scheduler))
        tokens, tables = plan.total_tokens, map(scheduler.pool.table, plan.num_tokens)
        blocks = max((len(table) for table in tables if first_run(table) < len(table)), default=0)
        counted = self._counted[tokens == len(plan.num_tokens)]
        if any(tokens <= most and blocks <= longest for most, longest in counted):
            return self.executor.execute(plan, scheduler)
        counted.append((tokens, blocks))
        with PeakMemory(device=self.executor.decoder.device) as memory:
            sampled = self.executor.execute(plan, scheduler)
        self.step_bytes = max(self.step_bytes, memory.peak_bytes)
        return sampled
