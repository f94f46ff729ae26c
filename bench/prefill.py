"""Prefill: one prompt, from its token ids to its first token, whole and in chunks."""

from collections.abc import Iterator
from functools import partial

from bench.contest import UNITS, Case, Entry, contest
from bench.field import Field, fields
from bench.table import Row, Run, Table
from lab.measure.work import prefill_pieces, step_work

# The most telling rows first: what the time does not suffice for is at the end.
CASES = [(4096, 4096), (4096, 512), (2048, 2048), (2048, 512), (8192, 8192), (8192, 512)]
CASES += [(4096, chunk) for chunk in (64, 256, 1024, 128, 2048)]
QUICK = [(96, 96), (96, 32)]
GOAL_CHUNK = 512
LLAMA_CPP_TOKENS = 2048  # it takes several times as long as the others: one length shows it


def rows(run: Run) -> Iterator[Row]:
    for field in fields(run):
        for case in run.in_time([prefill(field, *sizes) for sizes in (QUICK if run.quick else CASES)], field.dtype):
            yield from contest(case, field, run)


def prefill(field: Field, tokens: int, chunk: int) -> Case:
    """Chunks beside our own whole prompt too: what cutting it costs."""
    prompt = field.pair.prompt(tokens)
    entries = [Entry(field.ours.name, partial(field.ours.prefill, prompt, chunk))]
    if chunk < tokens:
        goal = 1.1 if chunk == GOAL_CHUNK else None
        entries.append(Entry("ours whole", partial(field.ours.prefill, prompt, tokens), goal))
    for peer in field.peers:
        if not (peer.name.startswith("llama.cpp") and tokens > LLAMA_CPP_TOKENS):
            entries.append(Entry(peer.name, partial(peer.prefill, prompt, chunk), _goal(peer.name, tokens, chunk)))
    config, dtype = field.pair.ours.decoder.config, field.pair.ours.decoder.dtype
    work = [step_work(config, [piece], dtype) for piece in prefill_pieces(tokens, chunk)]
    return Case({"dtype": field.dtype, "tokens": tokens, "chunk": chunk}, work, tokens, entries)


def _goal(peer: str, tokens: int, chunk: int) -> float | None:
    if peer.startswith("transformers"):
        return 1.0 if chunk in (tokens, GOAL_CHUNK) else None
    return 1.1 if peer.startswith("vllm") and chunk == GOAL_CHUNK else None


TABLE = Table("one prompt to its first token, in milliseconds", rows, UNITS)
