"""The interleaving gap: requests that decode while a long prompt comes in, and how long their tokens stay away."""

import random
import statistics
from dataclasses import dataclass

from lab.core import CacheConfig, ConfigError, Loop, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.core.metrics import gaps
from lab.engine.engine import make_executor
from lab.measure.steps import BLOCK_SIZE, backend_of
from lab.model.decoder import Decoder

CONTEXT = 128  # tokens of each decoding request before the prompt comes


@dataclass(frozen=True)
class GapRow:
    """A token budget: steps of the prompt; times in milliseconds, of each run."""

    budget: int
    steps: int
    longest_gap_ms: tuple[float, ...]  # of any decoding request, from the prompt's arrival to its first token
    ttft_ms: tuple[float, ...]  # of the prompt

    @property
    def gap(self) -> float:
        return statistics.median(self.longest_gap_ms)

    @property
    def ttft(self) -> float:
        return statistics.median(self.ttft_ms)


def interleaving_gaps(
    decoder: Decoder, prompt_tokens: int, budgets: list[int], *, decodes: int = 8, repeats: int = 3, seed: int = 0
) -> list[GapRow]:
    """A row a budget, the budgets in turn, after a run of each that is not counted.

    Raises ConfigError for a budget that leaves nothing for the prompt, and for a prompt beyond the model's positions.
    """
    runs = [[_run(decoder, prompt_tokens, budget, decodes, seed) for budget in budgets] for _ in range(1 + repeats)]
    rows = []
    for budget, of_budget in zip(budgets, zip(*runs[1:]), strict=True):
        longest, ttft, steps = zip(*of_budget)
        rows.append(GapRow(budget, steps[0], longest, ttft))
    return rows


def _run(decoder: Decoder, prompt_tokens: int, budget: int, decodes: int, seed: int) -> tuple[float, float, int]:
    """(longest gap in ms, TTFT in ms, steps until the prompt's first token)."""
    room = budget - decodes  # for prompts, when all that decode take their token first
    if room < 1:
        raise ConfigError(f"budget is {budget} and {decodes} requests decode; it must be at least {decodes + 1}")
    most = -(-decodes * CONTEXT // room) + -(-prompt_tokens // room) + 3  # no request is over before the prompt is
    blocks = decodes * -(-(CONTEXT + most) // BLOCK_SIZE) + -(-prompt_tokens // BLOCK_SIZE)
    cache = CacheConfig(blocks, BLOCK_SIZE)
    limits = SchedulerConfig(budget, decodes + 1, max_model_len=decoder.config.max_position_embeddings)
    loop = Loop(Scheduler(limits, cache), make_executor(decoder, cache, backend_of(decoder)))
    rng = random.Random(seed)

    def request(name: str, tokens: int, output: int) -> Request:
        prompt = rng.choices(range(decoder.config.vocab_size), k=tokens)
        return Request(name, prompt, SamplingParams(output), arrival=loop.clock.now())

    for number in range(decodes):
        loop.submit(request(str(number), CONTEXT, most))
    times = [timeline.token_times for timeline in loop.trace.requests.values()]
    while min(map(len, times)) < 2:
        loop.step()
    before, begin = [len(own) for own in times], len(loop.trace.steps)
    loop.submit(request("prompt", prompt_tokens, 1))
    prompt = loop.trace.requests["prompt"]
    while not prompt.token_times:
        loop.step()
    longest = max(gap for own, n in zip(times, before) for gap in gaps(own[n - 1 :]))
    return longest * 1e3, (prompt.token_times[0] - prompt.arrival) * 1e3, len(loop.trace.steps) - begin
