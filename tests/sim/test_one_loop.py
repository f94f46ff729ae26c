"""The simulator is the engine's own loop: on the same load both give the same steps, and a change to either shows."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from lab.core import CacheConfig, Loop, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.engine.engine import make_executor
from lab.model.attention import select_backend
from lab.model.weights import load_model
from lab.policies import POLICIES
from lab.sim import LinearCost, SimulatedExecutor, VirtualClock
from lab.sim.arrivals import ByStep

SEEDS = range(20)
CACHES = {"below 1": CacheConfig(40, 4), "above 1": CacheConfig(11, 4)}
LIMITS = SchedulerConfig(max_num_batched_tokens=16, max_num_seqs=4)


@pytest.fixture(scope="module")
def decoder():
    return load_model("tiny", dtype="float32", device="cpu").decoder


def load(seed: int, vocabulary: int) -> ByStep:
    """Five requests of random lengths and tokens, each at a step of its own; four together need up to 40 blocks."""
    rng = random.Random(seed)
    timed = []
    for index in range(5):
        prompt = rng.choices(range(vocabulary), k=rng.randint(1, 28))
        sampling = SamplingParams(rng.randint(1, 10))
        timed.append((index + rng.randint(0, 1) / 2, Request(f"r{index}", prompt, sampling, rng.randint(0, 2))))
    return ByStep(timed)


def steps(loop: Loop, arrivals: ByStep) -> list[tuple]:
    """Of each step: (request, tokens) in order, who was preempted, who ended, blocks used."""
    trace = loop.run(arrivals)
    assert not trace.refused
    return [(list(s.num_tokens.items()), s.preempted, s.finished, s.used_blocks) for s in trace.steps]


def simulated(scheduler: Scheduler, seed: int) -> list[tuple]:
    clock = VirtualClock()
    return steps(Loop(scheduler, SimulatedExecutor(LinearCost(), clock), clock), load(seed, 512))


def engine(scheduler: Scheduler, seed: int, decoder) -> list[tuple]:
    backend = select_backend(None, decoder.config, decoder.device, decoder.dtype, scheduler.cache.block_size).backend
    executor = make_executor(decoder, scheduler.cache, backend)
    return steps(Loop(scheduler, executor), load(seed, decoder.config.vocab_size))


@pytest.mark.parametrize("pressure", CACHES)
@pytest.mark.parametrize("policy", POLICIES)
def test_simulator_and_engine_take_the_same_steps(policy, pressure, decoder):
    preemptions = 0
    for seed in SEEDS[pressure == "above 1" :: 2]:
        make, cache = POLICIES[policy], replace(CACHES[pressure], num_cpu_blocks=8 * (policy == "swap"))
        expected = engine(make(LIMITS, cache), seed, decoder)
        assert simulated(make(LIMITS, cache), seed) == expected
        preemptions += sum(len(preempted) for _, preempted, _, _ in expected)
    if policy in ("vllm", "first-chunk", "swap", "prefill-first"):
        assert (preemptions > 0) == (pressure == "above 1")


class AdmissionEvicts(Scheduler):
    """The tail that no real system has: a waiting request takes the place of a running one."""

    def _admit_waiting(self, step):
        if self.waiting and len(self.running) > 1:
            missing = self.pool.num_missing("", self.waiting.head.num_tokens)
            if missing > self.pool.num_free:
                self._preempt(step, self.running[-1])
        return super()._admit_waiting(step)


class LateRelease(Scheduler):
    """The blocks of who ended are free one step too late."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        super().__init__(config, cache)
        self.late: Sequence[str] = ()

    def update(self, plan, sampled):
        for name in self.late:
            self.pool.release(name)
        finished = super().update(plan, sampled)
        self.late = [f"late {request.request_id}" for request in finished]
        for name in self.late:
            self.pool.grow(name, 1)
        return finished


class NoChunkWhileDecoding(Scheduler):
    """A prompt waits in `running` while anybody decodes."""

    def _schedule_running(self, step, requests: Sequence[Request]) -> None:
        decoding = [r for r in requests if r.output_token_ids]
        super()._schedule_running(step, decoding or requests)


@pytest.mark.parametrize("mutant", [AdmissionEvicts, LateRelease, NoChunkWhileDecoding])
def test_a_mutant_of_either_side_is_caught(mutant, decoder):
    cache = CACHES["above 1"]
    runs = [(simulated(mutant(LIMITS, cache), s), engine(Scheduler(LIMITS, cache), s, decoder)) for s in SEEDS[:5]]
    assert any(sim != real for sim, real in runs)
    runs = [(simulated(Scheduler(LIMITS, cache), s), engine(mutant(LIMITS, cache), s, decoder)) for s in SEEDS[:5]]
    assert any(sim != real for sim, real in runs)
