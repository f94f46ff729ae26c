"""Prefill: one prompt, from its token ids to its first token, whole and in chunks."""

from collections.abc import Callable

import torch

from bench.contest import UNITS, Contest, Tokens, rows_of
from bench.models import Pair
from bench.table import Table
from lab.core import SamplingParams
from lab.engine import Engine

CHUNK = 512
WHOLE_GOAL, CHUNKED_GOAL = 1.0, 0.95


def contests(pair: Pair, lengths: tuple[int, ...] = (2048, 4096), chunk: int = CHUNK) -> list[Contest]:
    return [contest(pair, length, size) for length in lengths for size in (None, chunk)]


def contest(pair: Pair, length: int, chunk: int | None) -> Contest:
    """`chunk` tokens at a time, or all at once."""
    prompt = pair.prompt(length)
    return Contest(
        settings={"tokens": length, "chunk": chunk or length},
        goal=WHOLE_GOAL if chunk is None else CHUNKED_GOAL,
        ours=ours(pair, prompt, chunk or length),
        theirs={"generate": theirs(pair, prompt, chunk)},
    )


def ours(pair: Pair, prompt: list[int], chunk: int) -> Callable[[], Tokens]:
    """Through the engine: scheduler, loop and executor. A request that is alone is cut by the token budget."""
    engine = Engine(pair.ours, max_num_batched_tokens=chunk)
    return lambda: [done.token_ids for done in engine.generate([prompt], SamplingParams(max_tokens=1))]


def theirs(pair: Pair, prompt: list[int], chunk: int | None) -> Callable[[], Tokens]:
    ids = torch.tensor([prompt])
    options = {"max_new_tokens": 1, "do_sample": False, "prefill_chunk_size": chunk}
    return lambda: pair.theirs.generate(ids, **options)[:, len(prompt) :].tolist()


TABLE = Table("milliseconds of processor time", rows_of(contests, lengths=(96,), chunk=32), UNITS)
