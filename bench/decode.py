"""Decode: the next tokens of prompts that are computed already, all in one batch."""

from collections.abc import Iterator
from functools import partial

from bench.contest import UNITS, Case, Entry, contest
from bench.field import Field, fields
from bench.table import Row, Run, Table
from lab.measure.work import Piece, step_work

# (requests, tokens of each); the most telling rows first: what the time does not suffice for is at the end.
CASES = [(1, 128), (8, 128), (32, 128), (1, 2048), (8, 2048), (32, 2048)]
QUICK = [(1, 24), (3, 24)]
NEW_TOKENS = 8  # of each request in one call
GOAL = 1.0


def rows(run: Run) -> Iterator[Row]:
    for field in fields(run):
        for case in run.in_time([decode(field, *sizes) for sizes in (QUICK if run.quick else CASES)], field.dtype):
            yield from contest(case, field, run)


def decode(field: Field, batch: int, context: int) -> Case:
    prompts = [field.pair.prompt(context, seed) for seed in range(batch)]
    entries = [
        Entry(
            player.name,
            partial(player.decode, prompts, NEW_TOKENS),
            None if player is field.ours or player.name.startswith("llama.cpp") else GOAL,
        )
        for player in field.players
    ]
    config, dtype = field.pair.ours.decoder.config, field.pair.ours.decoder.dtype
    work = [step_work(config, [Piece(1, context + 1)] * batch, dtype)] * NEW_TOKENS  # the context as it begins
    settings = {"dtype": field.dtype, "batch": batch, "context": context}
    return Case(settings, work, batch * NEW_TOKENS, entries)


TABLE = Table(
    f"{NEW_TOKENS} more tokens of each request, in milliseconds", rows, UNITS, {"new_tokens": NEW_TOKENS}, 540
)
