"""Streams on a GPU: the catalogue's verdicts, missing waits again and again, the sanitizer, and the engine's swap."""

import json

import pytest
import torch

from lab.checks.stream_costs import spin
from lab.checks.stream_overlap import hidden_copies
from lab.checks.streams import missing_waits, sanitizer
from lab.core import SamplingParams
from lab.engine import Engine
from lab.model.device import SideStream
from lab.model.weights import load_model
from lab.perfetto.streams import streams_document
from lab.perfetto.validate import validate
from lab.policies.swap import Swap
from lab.streams.programs import PROGRAMS, find
from lab.streams_torch.backends import run_on_cuda

PROMPTS = [list(range(1, 25)), list(range(30, 54))]
GREEDY = SamplingParams(max_tokens=4)
BLOCK = 4 * 2 * 4 * 2 * 32 * 4  # bytes of 4 tokens in the tiny model, float32


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_variant_comes_to_the_expected_verdict(device: torch.device, name: str) -> None:
    for variant in find(name).variants:
        verdict, works = run_on_cuda(find(name), variant)
        assert verdict.agrees(variant), (variant.name, verdict)
        validate(json.loads(json.dumps(streams_document([(variant.name, works)]))))


def test_a_trace_has_both_streams_of_a_program(device: torch.device) -> None:
    _, works = run_on_cuda(find("raw"), find("raw").variant("event"))
    contents = validate(streams_document([("raw", works)]))
    assert contents.tracks == 2 and contents.kinds["slices"] == len(works) >= 2


@pytest.mark.parametrize("rows_of", [missing_waits, sanitizer, hidden_copies])
def test_every_verdict_of_an_experiment_holds(device: torch.device, rows_of) -> None:
    rows = rows_of(device)
    assert all(row["match"] for row in rows), [row for row in rows if not row["match"]]


class LateCopies(SideStream):
    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        with torch.cuda.stream(self._stream):
            spin(5000)
        super().copy(target, source)


class LateCopiesWithoutJoin(LateCopies):
    def join(self) -> None:
        pass


class WithoutFork(SideStream):
    def fork(self) -> None:
        pass


def answers(device: torch.device, side_type: type[SideStream], *, num_blocks: int = 8, compute_us: float = 0):
    """Of an engine too small for both prompts, so that the second is swapped out and in again, after steps without a
    sampled token: in those nothing else makes the host wait. Kernels of a step begin `compute_us` late."""
    engine = Engine(
        load_model("tiny", dtype="float32", device=device),
        kv_cache_memory_bytes=num_blocks * BLOCK,
        block_size=4,
        max_num_seqs=4,
        long_prefill_token_threshold=4,
        scheduler_type=Swap,
        swap_space_bytes=64 * BLOCK,
    )
    executor = engine.loop.executor
    executor.side = side_type(device)
    forward = executor.forward

    def late_forward(batch):
        if compute_us:
            spin(compute_us)
        return forward(batch)

    executor.forward = late_forward
    found = [completion.token_ids for completion in engine.generate(PROMPTS, GREEDY)]
    assert (executor.bytes_out > 0) == (num_blocks == 8)
    return found


def test_late_copies_and_late_kernels_change_no_token(device: torch.device) -> None:
    unhurried = answers(device, SideStream, num_blocks=64)
    assert answers(device, SideStream) == unhurried
    assert answers(device, LateCopies) == unhurried
    assert answers(device, SideStream, compute_us=20_000) == unhurried


def test_either_wait_taken_away_changes_tokens(device: torch.device) -> None:
    unhurried = answers(device, SideStream, num_blocks=64)
    assert answers(device, LateCopiesWithoutJoin) != unhurried
    assert answers(device, WithoutFork, compute_us=20_000) != unhurried
