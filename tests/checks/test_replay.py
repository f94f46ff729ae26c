"""The engine in virtual time does what the simulator says, computes real tokens, and counts its bytes."""

import pytest

from lab.checks.replay import replay, with_tokens
from lab.core import CacheConfig, SamplingParams, Scheduler, SchedulerConfig
from lab.engine import Engine
from lab.measure.memory import PeakMemory
from lab.model.attention import select_backend
from lab.model.weights import load_model
from lab.policies.swap import Swap
from lab.sim import simulate
from lab.sim.cost_model import SwapCost
from lab.sim.load import Load
from lab.sim.step_cost import StepCost
from lab.streams_torch.swap import LateSide

TINY = load_model("tiny", dtype="float32", device="cpu")
DECODER = TINY.decoder
SDPA = select_backend("sdpa", DECODER.config, DECODER.device, DECODER.dtype, 16).backend
COST = StepCost(1.1e-3, 25e-6, 0.31e-3, 0.54e-6, 0.042e-6)
LOAD = Load(tuple((i / 500, prompt, 24) for i, prompt in enumerate((40, 150, 30, 90, 20, 110))))
BLOCK = 16 * 2048  # bytes


def scheduler(num_blocks=16, budget=64, policy=Scheduler, **cache):
    return policy(SchedulerConfig(budget, 6), CacheConfig(num_blocks, **cache))


def run(made, cost=COST, load=LOAD, **options):
    return replay(load, made, DECODER, SDPA, cost, **options)


@pytest.mark.parametrize("budget", [16, 64, 512])
def test_every_step_is_the_simulators(budget):
    trace = run(scheduler(budget=budget)).trace
    simulated = simulate(LOAD.requests(), scheduler(budget=budget), COST)
    assert trace.steps == simulated.steps and trace.requests == simulated.requests
    assert any(step.preempted for step in trace.steps)


def test_tokens_are_those_of_the_engine_serving_each_prompt_alone():
    replayed = run(scheduler()).tokens
    for request in with_tokens(LOAD, DECODER.config.vocab_size):
        (alone,) = Engine(TINY).generate([request.prompt_token_ids], SamplingParams(24))
        assert replayed[request.request_id] == alone.token_ids


CASES = {  # pool, budget, load
    "the largest steps early": (16, 64, LOAD),
    "a small budget, full long before a long prompt's KV is copied": (
        28, 8, Load(((0.0, 30, 16), (0.004, 30, 4), (0.02, 20, 4), (0.06, 300, 4))),
    ),
    "a longer prompt, whose blocks are consecutive, before that": (
        30, 16, Load(((0.0, 200, 1), (0.2, 20, 16), (0.22, 20, 4), (0.22, 150, 2))),
    ),
    "many tokens with nothing to copy, late": (29, 64, Load(((0.0, 5, 40), (0.02, 30, 4), (0.08, 200, 4)))),
}  # fmt: skip


@pytest.mark.parametrize(("num_blocks", "budget", "load"), CASES.values(), ids=CASES)
def test_the_largest_steps_are_those_that_need_most(num_blocks, budget, load):
    """`step_bytes` looks at few steps; here every step is counted, and the pool that is made first."""
    with PeakMemory() as memory:
        counted = run(scheduler(num_blocks, budget), load=load).step_bytes
    most = memory.peak_bytes - num_blocks * BLOCK
    assert 0.9 * most < counted <= most


def test_swapped_blocks_come_back_and_are_charged_for():
    made = scheduler(policy=Swap, num_cpu_blocks=64)
    slow = SwapCost(COST, BLOCK, bytes_per_s=1e6)
    swapped = run(made, slow)
    assert swapped.bytes_out > 0 and swapped.tokens == run(scheduler()).tokens
    free = simulate(LOAD.requests(), scheduler(policy=Swap, num_cpu_blocks=64), COST).steps
    assert swapped.trace.steps[-1].end > free[-1].end + swapped.bytes_out / 1e6


def test_copies_on_a_thread_change_no_token():
    late = run(scheduler(policy=Swap, num_cpu_blocks=64), side=LateSide(delay=0.001))
    assert late.bytes_out > 0 and late.tokens == run(scheduler()).tokens


def test_copies_that_nobody_waits_for_do():
    class Careless(LateSide):
        def join(self):
            pass

    careless = run(scheduler(policy=Swap, num_cpu_blocks=64), side=Careless(delay=0.05))
    assert careless.tokens != run(scheduler()).tokens
