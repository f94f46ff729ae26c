"""Decode: the next tokens of prompts that are computed already, all prompts in one batch.

Each call goes on where the last one stopped, so the context grows alike for all and no prompt is computed twice: the
warm-up call computes it.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from transformers import DynamicCache

from bench.contest import UNITS, Contest, Tokens, rows_of
from bench.models import Pair
from bench.table import Table
from lab.core import SamplingParams
from lab.engine import Engine

GOAL = 1.0


def contests(
    pair: Pair, batch_sizes: tuple[int, ...] = (1, 16), context: int = 1024, new_tokens: int = 16
) -> list[Contest]:
    return [contest(pair, batch_size, context, new_tokens) for batch_size in batch_sizes]


def contest(pair: Pair, batch_size: int, context: int, new_tokens: int) -> Contest:
    """transformers in two ways: its `generate`, and bare forward passes, which spare it generate's bookkeeping."""
    prompts = [pair.prompt(context, seed) for seed in range(batch_size)]

    def calls(of: Callable[[Pair, list[list[int]], int], Iterator[Tokens]]) -> Callable[[], Tokens]:
        return partial(next, of(pair, prompts, new_tokens))

    return Contest(
        settings={"batch": batch_size, "context": context, "new_tokens": new_tokens},
        goal=GOAL,
        ours=calls(ours),
        theirs={"generate": calls(generate), "forward": calls(forward)},
    )


def ours(pair: Pair, prompts: list[list[int]], new_tokens: int) -> Iterator[Tokens]:
    engine = Engine(pair.ours, kv_cache_memory_bytes=2**30, max_num_batched_tokens=sum(map(len, prompts)))
    requests = [engine.submit(prompt, SamplingParams(max_tokens=1024)) for prompt in prompts]
    while True:
        for _ in range(new_tokens):
            engine.step()
        yield [request.output_token_ids[-new_tokens:] for request in requests]


def generate(pair: Pair, prompts: list[list[int]], new_tokens: int) -> Iterator[Tokens]:
    cache, ids = DynamicCache(config=pair.theirs.config), torch.tensor(prompts)
    while True:
        ids = pair.theirs.generate(ids, cache=cache, max_new_tokens=new_tokens, do_sample=False)
        yield ids[:, -new_tokens:].tolist()


@torch.inference_mode()
def forward(pair: Pair, prompts: list[list[int]], new_tokens: int) -> Iterator[Tokens]:
    cache, ids = DynamicCache(config=pair.theirs.config), torch.tensor(prompts)
    while True:
        new = []
        for _ in range(new_tokens):
            ids = pair.theirs(ids, cache=cache, logits_to_keep=1).logits.argmax(-1)
            new.append(ids)
        yield torch.cat(new, 1).tolist()


TABLE = Table("milliseconds of processor time", rows_of(contests, batch_sizes=(1, 3), context=24, new_tokens=4), UNITS)
