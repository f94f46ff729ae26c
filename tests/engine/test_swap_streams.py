"""The engine's swap on a side stream: nothing is missing in what it does, and either wait would be missed."""

import pytest

from lab.core import SamplingParams
from lab.engine import Engine
from lab.model.weights import load_model
from lab.policies.swap import Swap
from lab.streams.races import Kind
from lab.streams.runtime import MAIN
from lab.streams_torch.swap import COPIES, LateSide, RecordedSide, trace_swaps

PROMPTS = [list(range(1, 25)), list(range(30, 54))]
GREEDY = SamplingParams(max_tokens=4)
BLOCK = 4 * 2 * 4 * 2 * 32 * 4  # bytes of 4 tokens in the tiny model


def engine(num_blocks: int = 8) -> Engine:
    """By default too small for both prompts, which come in chunks of 4: the second is swapped out, and in again."""
    return Engine(
        load_model("tiny", dtype="float32", device="cpu"),
        kv_cache_memory_bytes=num_blocks * BLOCK,
        block_size=4,
        max_num_seqs=4,
        long_prefill_token_threshold=4,
        scheduler_type=Swap,
        swap_space_bytes=64 * BLOCK,
    )


def answers(served: Engine) -> list[list[int]]:
    return [completion.token_ids for completion in served.generate(PROMPTS, GREEDY)]


class WithoutFork(RecordedSide):
    def fork(self) -> None:
        pass


class WithoutJoin(RecordedSide):
    def join(self) -> None:
        pass


def test_its_recorded_program_has_no_hazard():
    served = engine()
    assert trace_swaps(served, PROMPTS, GREEDY) == []
    executor = served.loop.executor
    assert executor.bytes_out == executor.bytes_in == 4 * BLOCK


@pytest.mark.parametrize(("side", "first", "second"), [(WithoutFork, MAIN, COPIES), (WithoutJoin, COPIES, MAIN)])
def test_either_wait_taken_away_is_caught_in_both_directions(side, first, second):
    hazards = trace_swaps(engine(), PROMPTS, GREEDY, side)
    kinds = {hazard.kind for hazard in hazards if (hazard.first.stream, hazard.second.stream) == (first, second)}
    assert {Kind.READ_AFTER_WRITE, Kind.WRITE_AFTER_READ} <= kinds
    files = {op.line.file.rsplit("/", 1)[1] for hazard in hazards for op in (hazard.first, hazard.second)}
    assert {"swap.py", "kv_store.py"} <= files


def test_late_copies_change_no_token():
    late = engine()
    late.loop.executor.side = LateSide(delay=0.01)
    assert answers(late) == answers(engine(64))
    assert late.loop.executor.bytes_out > 0


def test_late_copies_that_nobody_waits_for_do():
    class Careless(LateSide):
        def join(self) -> None:
            pass

    late = engine()
    late.loop.executor.side = Careless(delay=0.05)
    assert answers(late) != answers(engine(64))
