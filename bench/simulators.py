"""Simulated requests per second: ours, sched-sim and Vidur on the same requests, in one process.

All have chunked prefill with the same budget, more KV blocks than they need, and the same time for a step, in place of
their own: so the batches are alike, and what is timed is the simulator. Vidur's own step times come from profiles that
it downloads; without them, and with its metrics off, it is faster than it would be. The process is one of the
environment that has the peers: `python -m bench.simulators` there prints the rows.
"""

import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from bench.table import Row, Run, Table, python_of
from bench.turns import answer, in_turn, measured_in, rates
from lab.core import CacheConfig, Scheduler, SchedulerConfig, StepPlan
from lab.sim import LinearCost, simulate
from lab.sim.load import Load, read_load
from lab.sim.tally import StreamingTrace

WHERE = "AzureLLMInferenceTrace_conv.csv, which https://github.com/Azure/AzurePublicDataset has in data"
SYNTHETIC = "azure-conv"  # what takes its place
BUDGET, MAX_SEQS, NUM_BLOCKS, BLOCK_SIZE = 512, 256, 2**15, 16
COST = LinearCost(step_ms=8.0, token_ms=0.05)  # about a model of 8 billion parameters on an A100
SOME, ALL, WITHIN_S = 2000, 19366, 6.0  # requests beside the peers; of the whole trace, and how long it may take us


class Simulated(NamedTuple):
    seconds: float  # of processor time
    steps: int
    batch: float  # requests in a step, on average


class Steps:
    """The time of a step, in seconds, and how many there were. Also the cost model of our simulator."""

    def __init__(self) -> None:
        self.count = self.requests = 0

    def take(self, tokens: int, requests: int) -> float:
        self.count += 1
        self.requests += requests
        return (COST.step_ms + COST.token_ms * tokens) / 1e3

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        return self.take(plan.total_tokens, len(plan.num_tokens))

    def simulated(self, seconds: float) -> Simulated:
        return Simulated(seconds, self.count, self.requests / self.count)


def ours(load: Load) -> Simulated:
    """As `lab simulate` and `lab tune` run a trace: what is over is added up and forgotten."""
    steps, start = Steps(), time.process_time()
    config = SchedulerConfig(max_num_seqs=MAX_SEQS, max_num_batched_tokens=BUDGET)
    trace = StreamingTrace(NUM_BLOCKS)
    simulate(load.requests(), Scheduler(config, CacheConfig(NUM_BLOCKS, BLOCK_SIZE)), steps, trace)
    summary = trace.tally.summary()
    assert summary.finished == len(load.shapes) and not summary.preemptions
    return steps.simulated(time.process_time() - start)


def sched_sim() -> tuple[str, Callable[[Load], Simulated]]:
    """sched-sim's own loop with its chunked scheduler, which takes its KV blocks from the memory of an A100."""
    from sched_sim.core.event_engine import Simulator
    from sched_sim.core.request import Request
    from sched_sim.hardware.latency_model import RooflineLatencyModel
    from sched_sim.hardware.presets import PRESETS
    from sched_sim.schedulers.factory import create_scheduler

    class Linear(RooflineLatencyModel):
        def __init__(self, steps: Steps) -> None:
            super().__init__(PRESETS["a100"])
            self.steps = steps

        def compute_mixed_step_time(self, prefill: int, decode: int, context: int) -> float:
            return self.steps.take(prefill + decode, decode)

        def compute_prefill_step_time(self, prefill: int) -> float:
            return self.steps.take(prefill, 0)

        def compute_decode_step_time(self, decode: int, context: int) -> float:
            return self.steps.take(decode, decode)

    def run(load: Load) -> Simulated:
        start = time.process_time()
        scheduler = create_scheduler("chunked", PRESETS["a100"], token_budget=BUDGET, max_batch_size=MAX_SEQS)
        scheduler.latency_model = Linear(Steps())
        simulator = Simulator(PRESETS["a100"], scheduler)
        simulator.submit_workload(
            [
                Request(request_id=str(number), arrived_at=arrival, prompt_tokens=prompt, output_tokens=output)
                for number, (arrival, prompt, output) in enumerate(load.shapes)
            ]
        )
        metrics = simulator.run()
        assert metrics.completed_requests == len(load.shapes) and not metrics.preempted_requests_count
        return Simulated(time.process_time() - start, metrics.total_iterations, metrics.avg_batch_size)

    return f"sched-sim {version('sched-sim')}", run


def vidur() -> tuple[str, Callable[[Load], Simulated]]:
    """Vidur's own loop with its Sarathi scheduler; requests and step times come in by its registries."""
    from vidur import config as cfg
    from vidur._native.entities import ExecutionTime
    from vidur.config import config as more
    from vidur.entities import Replica, Request
    from vidur.execution_time_predictor import ExecutionTimePredictorRegistry
    from vidur.request_generator import RequestGeneratorRegistry
    from vidur.simulator import Simulator
    from vidur.types import ExecutionTimePredictorType, RequestGeneratorType

    logging.getLogger("vidur").setLevel(logging.CRITICAL)

    class Linear:
        def __init__(self, steps: Steps, **_: Any) -> None:
            self.steps = steps

        def get_execution_time(self, batch: Any, pipeline_stage: int) -> Any:
            milliseconds = 1e3 * self.steps.take(batch.total_num_q_tokens, len(batch.requests))
            return ExecutionTime(1, milliseconds, *(13 * [0.0]))

    class Requests:
        def __init__(self, load: Load, config: Any) -> None:
            self.load = load

        def generate(self) -> list[Any]:
            return [Request(*shape) for shape in self.load.shapes]

    off = ("write_metrics", "store_plots", "enable_chrome_trace", "store_request_metrics", "store_batch_metrics")
    metrics = dict.fromkeys((*off, "store_utilization_metrics"), False)

    def run(load: Load) -> Simulated:
        steps, start = Steps(), time.process_time()
        Replica._id = -1  # else it is counted on from run to run, and its scheduler looks for replica 0
        for registry, key, made in (
            (ExecutionTimePredictorRegistry, ExecutionTimePredictorType.RANDOM_FORREST, partial(Linear, steps)),
            (RequestGeneratorRegistry, RequestGeneratorType.SYNTHETIC, partial(Requests, load)),
        ):
            registry.unregister(key)
            registry.register(key, made)
        with tempfile.TemporaryDirectory() as folder:
            cluster = cfg.ClusterConfig(
                replica_config=cfg.ReplicaConfig(num_pipeline_stages=1, tensor_parallel_size=1),
                cache_config=cfg.CacheConfig(block_size=BLOCK_SIZE, num_blocks=NUM_BLOCKS),
                replica_scheduler_config=more.SarathiSchedulerConfig(batch_size_cap=MAX_SEQS, chunk_size=BUDGET),
            )
            settings = cfg.MetricsConfig(**metrics, output_dir=folder)
            Simulator(cfg.SimulationConfig(cluster_config=cluster, metrics_config=settings)).run()
        return steps.simulated(time.process_time() - start)

    return f"vidur {version('vidur')}", run


def rows(repeats: int, quick: bool, source: str) -> Iterator[Row]:
    """A row beside each peer that is there, and one of the whole trace on our own."""
    some, whole = (read_load(source, 20 if quick else count) for count in (SOME, ALL))
    calls: dict[str, Callable[[], Simulated]] = {"ours": partial(ours, some)}
    for peer in (sched_sim, vidur):
        try:
            name, run = peer()
        except ImportError as error:
            yield {"left_out": f"{peer.__name__}: {error}"}
        else:
            calls[name] = partial(run, some)
    found = in_turn(calls, repeats)
    mine = found.pop("ours")
    load = f"{SYNTHETIC}, synthetic" if source == SYNTHETIC else Path(source).name
    for name, theirs in found.items():
        yield {"load": load, "requests": len(some.shapes), **sides(len(some.shapes), mine, name, theirs)}
    alone = in_turn({"ours": partial(ours, whole)}, repeats)["ours"]
    yield {"load": load, "requests": len(whole.shapes), **sides(len(whole.shapes), alone, None, None)}


def sides(requests: int, mine: list[Simulated], peer: str | None, theirs: list[Simulated] | None) -> Row:
    """The columns of a row; a peer that isn't there has none, and then the goal is our own."""
    us = side("ours", requests, mine)
    them: Mapping[str, Any] = dict.fromkeys(name.replace("ours", "peer") for name in us)
    if theirs:
        them = side("peer", requests, theirs)
    return {
        **us,
        "at_least_per_s": None if theirs else ALL / WITHIN_S,
        "peer": peer,
        **them,
        "ratio": them["peer_per_s"] / us["ours_per_s"] if theirs else None,
        "goal": 1.0 if theirs else None,
    }


def side(who: str, requests: int, runs: list[Simulated]) -> dict[str, float]:
    columns = rates(who, requests, [run.seconds for run in runs])
    return columns | {f"{who}_steps": runs[0].steps, f"{who}_batch": fmean(run.batch for run in runs)}


def asked(run: Run) -> Iterator[Row]:
    if run.trace:
        source = str(run.trace.resolve())
    else:
        source = SYNTHETIC
        run.left_out.append(f"a real trace: {SYNTHETIC} is made up by its statistics; give --trace {WHERE}")
    return measured_in(python_of("sims"), "bench.simulators", run, source=source)


UNITS = {f"{who}_{what}": "1/s" for who in ("ours", "peer") for what in ("per_s", "min_per_s", "max_per_s")}
UNITS |= {f"{who}_steps": "1" for who in ("ours", "peer")} | {f"{who}_batch": "requests" for who in ("ours", "peer")}
TABLE = Table(
    "simulated requests per second of processor time",
    asked,
    UNITS | {"ratio": "1"},
    {
        "clock": "process",
        "budget": BUDGET,
        "max_num_seqs": MAX_SEQS,
        "step_ms": COST.step_ms,
        "token_ms": COST.token_ms,
    },
)

if __name__ == "__main__":
    sys.exit(answer(rows))
