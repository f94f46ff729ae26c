"""The lab's engine: scheduler, loop and executor, as a user has them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.player import Stopwatch
from bench.players.stepped import Stepped
from lab.core import Request, SamplingParams
from lab.engine import Engine
from lab.model.weights import LoadedModel


class OurEngine:
    """One for all rows: the token budget is the scheduler's config, changed between requests."""

    def __init__(self, model: LoadedModel, max_num_seqs: int, kv_bytes: int) -> None:
        self.max_num_seqs = max_num_seqs
        self.engine = Engine(model, kv_cache_memory_bytes=kv_bytes, max_num_seqs=max_num_seqs)
        self.requests: dict[str, Request] = {}

    def limit(self, budget: int) -> None:
        scheduler = self.engine.loop.scheduler
        seqs = min(budget, self.max_num_seqs)
        scheduler.config = replace(scheduler.config, max_num_batched_tokens=budget, max_num_seqs=seqs)

    def submit(self, prompt: list[int], max_tokens: int) -> str:
        request = self.engine.submit(prompt, SamplingParams(max_tokens=max_tokens))
        self.requests[request.request_id] = request
        return request.request_id

    def step(self) -> Mapping[str, Sequence[int]]:
        outputs = {name: self.requests[name].output_token_ids for name in self.engine.step().num_tokens}
        return {name: tokens for name, tokens in outputs.items() if tokens}

    def abort(self, requests: Sequence[str]) -> None:
        for request in requests:
            self.engine.abort(request)


def ours(model: LoadedModel, max_num_seqs: int, kv_bytes: int, watch: Stopwatch) -> Stepped:
    budget = model.decoder.config.max_position_embeddings + max_num_seqs
    return Stepped("ours", OurEngine(model, max_num_seqs, kv_bytes), budget, watch)
