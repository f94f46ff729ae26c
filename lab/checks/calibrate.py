"""How long the engine's steps take: a mix of steps, measured, and a cost model fitted to them."""

import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from lab.core import (
    CacheConfig,
    Clock,
    Executor,
    Loop,
    Request,
    SamplingParams,
    Scheduler,
    SchedulerConfig,
    StepPlan,
    WallClock,
)
from lab.core.metrics import percentile
from lab.engine.engine import make_executor
from lab.measure.steps import BLOCK_SIZE
from lab.model.attention import AttentionBackend
from lab.model.decoder import Decoder
from lab.model.device import synchronize
from lab.sim.step_cost import MeasuredStep, StepCost, Terms, fit_steps, terms

LIMITS = ((1, 64), (3, 512), (6, 128), (12, 256))  # (max_num_seqs, max_num_batched_tokens)
REQUESTS = 12
PROMPT_TOKENS = (4, 600)
OUTPUT_TOKENS = (1, 40)

# What runs the steps over such a KV pool, and tells their time.
Machine = Callable[[CacheConfig], tuple[Executor, Clock]]


class ProcessorClock:
    """Processor time of this process, for a CPU that does other work too; waiting takes none, the clock jumps.

    Of one thread on a machine of its own it is wall time.
    """

    def __init__(self) -> None:
        self._zero = time.process_time()

    def now(self) -> float:
        return time.process_time() - self._zero

    def wait_until(self, moment: float) -> None:
        self._zero -= max(0.0, moment - self.now())


class DeviceClock(WallClock):
    """Wall time when the device is through with what it was given: a step that samples nothing does not wait for it."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def now(self) -> float:
        synchronize(self.device)
        return super().now()


@dataclass(frozen=True)
class EngineMachine:
    """The engine on its device, as a `Machine`."""

    decoder: Decoder
    attention: AttentionBackend

    def __call__(self, cache: CacheConfig) -> tuple[Executor, Clock]:
        clock = ProcessorClock() if self.clock == "process" else DeviceClock(self.decoder.device)
        return make_executor(self.decoder, cache, self.attention), clock

    @property
    def clock(self) -> str:
        """ "process" on a CPU of which one thread is used, else "wall": as in `lab.measure.timing`."""
        return "process" if self.decoder.device.type == "cpu" and torch.get_num_threads() == 1 else "wall"


@dataclass(frozen=True)
class Calibration:
    """A fitted cost, and the steps that it was fitted to."""

    cost: StepCost
    steps: list[MeasuredStep]

    def error(self, q: float) -> float:
        """The percentile of the relative error of the predicted times, over steps."""
        return percentile([abs(self.cost.of(step.terms) / step.seconds - 1) for step in self.steps], q)

    @property
    def total_error(self) -> float:
        """Relative error of the predicted time of all steps together."""
        return sum(self.cost.of(step.terms) for step in self.steps) / sum(step.seconds for step in self.steps) - 1


def fit_runs(runs: Sequence[Sequence[MeasuredStep]]) -> Calibration:
    """Fit to several runs of the mix; a step's time is its mean over them: what slows some steps slows a load's too."""
    steps = [
        MeasuredStep(same[0].terms, statistics.fmean(step.seconds for step in same)) for same in zip(*runs, strict=True)
    ]
    return Calibration(fit_steps(steps), steps)


def run_mix(machine: Machine, num_requests: int | None = None) -> list[MeasuredStep]:
    """The same steps each time: prompts in chunks of several sizes, decodes in batches of several sizes, and both.

    `num_requests` under each of the `LIMITS`; None is `REQUESTS`, which takes the largest batches to fill.
    """
    num_requests = REQUESTS if num_requests is None else num_requests
    cache = CacheConfig(num_requests * -(-(PROMPT_TOKENS[1] + OUTPUT_TOKENS[1]) // BLOCK_SIZE), BLOCK_SIZE)
    executor, clock = machine(cache)
    steps = []
    for max_num_seqs, budget in LIMITS:
        steps += run_steps(
            SchedulerConfig(budget, max_num_seqs), cache, _requests(num_requests, seed=budget), executor, clock
        )
    return steps


def run_steps(
    config: SchedulerConfig, cache: CacheConfig, requests: Iterable[Request], executor: Executor, clock: Clock
) -> list[MeasuredStep]:
    """The requests, submitted at once, to their end: what was in each step and how long it took."""
    watch = _Watch(executor)
    loop = Loop(Scheduler(config, cache), watch, clock)
    for request in requests:
        loop.submit(request)
    steps = []
    while loop.scheduler.has_unfinished:
        begin = clock.now()
        loop.step()
        steps.append(MeasuredStep(watch.terms, clock.now() - begin))
    return steps


def _requests(num_requests: int, seed: int) -> Iterator[Request]:
    rng = random.Random(seed)
    for number in range(num_requests):
        prompt = [rng.randrange(256) for _ in range(rng.randint(*PROMPT_TOKENS))]  # ids that every vocabulary has
        yield Request(str(number), prompt, SamplingParams(rng.randint(*OUTPUT_TOKENS)))


class _Watch:
    """An executor that notes what was in its last step."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.terms = Terms(0, 0, 0, 0, 0)

    def execute(self, plan: StepPlan, scheduler: Scheduler) -> Mapping[str, int]:
        self.terms = terms(plan, scheduler)
        return self.executor.execute(plan, scheduler)
