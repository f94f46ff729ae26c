"""Swapping on real tensors: the same greedy tokens as without pressure, and every byte that goes out comes back."""

import pytest

from lab.core import ConfigError, FinishReason, SamplingParams
from lab.engine import Engine
from lab.engine.swap import SwappingExecutor
from lab.model.weights import load_model
from lab.policies.swap import Swap

PROMPTS = [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], [200, 100, 50], list(range(40, 80)), [7]]
GREEDY = SamplingParams(max_tokens=16)
BLOCK = 4 * 2 * 4 * 2 * 32 * 4  # bytes of 4 tokens in the tiny model


@pytest.fixture(scope="module")
def model():
    return load_model("tiny", dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def alone(model):
    return [Engine(model).generate([prompt], GREEDY)[0].token_ids for prompt in PROMPTS]


def pressed(model, num_cpu_blocks: int) -> Engine:
    """An engine whose pool is too small for all prompts at once."""
    return Engine(
        model,
        kv_cache_memory_bytes=16 * BLOCK,
        block_size=4,
        max_num_seqs=4,
        scheduler_type=Swap,
        swap_space_bytes=num_cpu_blocks * BLOCK,
    )


def computed_tokens(engine: Engine) -> int:
    return sum(timeline.num_computed_tokens for timeline in engine.loop.trace.requests.values())


USEFUL = sum(len(prompt) + 15 for prompt in PROMPTS)


def test_swapped_requests_answer_the_same_and_nothing_is_computed_twice(model, alone):
    engine = pressed(model, num_cpu_blocks=64)
    assert [c.token_ids for c in engine.generate(PROMPTS, GREEDY)] == alone
    executor, scheduler = engine.loop.executor, engine.loop.scheduler
    assert executor.bytes_out == executor.bytes_in > 0 and executor.bytes_out % BLOCK == 0
    assert computed_tokens(engine) == USEFUL
    assert scheduler.host.num_used == scheduler.pool.num_used == 0


@pytest.mark.parametrize("num_cpu_blocks", [0, 1])
def test_a_victim_that_the_host_cannot_hold_is_recomputed(model, alone, num_cpu_blocks):
    engine = pressed(model, num_cpu_blocks)
    assert [c.token_ids for c in engine.generate(PROMPTS, GREEDY)] == alone
    assert computed_tokens(engine) > USEFUL
    assert engine.loop.scheduler.pool.num_used == 0


@pytest.mark.parametrize("direction", ["swap_out", "swap_in"])
def test_a_copy_left_out_changes_the_tokens(model, alone, monkeypatch, direction):
    monkeypatch.setattr(SwappingExecutor, direction, lambda self, copy: 0)
    tokens = [c.token_ids for c in pressed(model, num_cpu_blocks=64).generate(PROMPTS, GREEDY)]
    assert tokens != alone


@pytest.mark.parametrize("direction", ["swap_out", "swap_in"])
def test_a_copy_that_fails_costs_a_recomputation_and_no_token(model, alone, monkeypatch, direction):
    engine = pressed(model, num_cpu_blocks=64)
    move, failures = getattr(SwappingExecutor, direction), iter([True])

    def flaky(self, copy):
        if next(failures, False):
            raise MemoryError("no host memory")
        return move(self, copy)

    monkeypatch.setattr(SwappingExecutor, direction, flaky)
    requests = [engine.submit(prompt, GREEDY) for prompt in PROMPTS]
    with pytest.raises(MemoryError):
        while True:
            engine.step()
    while engine.loop.scheduler.has_unfinished:
        engine.step()
    assert [request.output_token_ids for request in requests] == alone
    assert computed_tokens(engine) > USEFUL
    assert engine.loop.scheduler.host.num_used == engine.loop.scheduler.pool.num_used == 0


def test_a_request_aborted_while_it_is_swapped_out_gives_its_host_blocks_back(model):
    engine = pressed(model, num_cpu_blocks=64)
    requests = [engine.submit(prompt, GREEDY) for prompt in PROMPTS]
    scheduler = engine.loop.scheduler
    while scheduler.host.num_used == 0:
        engine.step()
    victim = next(r for r in requests if scheduler.host.table(r.request_id))
    engine.abort(victim.request_id)
    assert victim.finish_reason is FinishReason.ABORT and not scheduler.host.table(victim.request_id)
    while scheduler.has_unfinished:
        engine.step()
    assert scheduler.host.num_used == scheduler.pool.num_used == 0


def test_swap_space_needs_a_scheduler_that_swaps(model):
    with pytest.raises(ConfigError, match="Scheduler does not swap"):
        Engine(model, swap_space_bytes=64 * BLOCK, block_size=4)
