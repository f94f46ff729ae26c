"""The lab's engine: scheduler, loop and executor, as a user has them."""

from dataclasses import replace

from bench.player import MAX_TOKENS, Meeting, Sample, Stopwatch, Tokens, met
from lab.core import Request, SamplingParams
from lab.engine import Engine
from lab.model.weights import LoadedModel

FIRST, MANY = SamplingParams(max_tokens=1), SamplingParams(max_tokens=MAX_TOKENS)


class Ours:
    """One engine for all rows: the token budget is the scheduler's config, changed between requests."""

    name = "ours"

    def __init__(self, model: LoadedModel, max_num_seqs: int, kv_bytes: int, watch: Stopwatch) -> None:
        self.watch = watch
        self.max_num_seqs = max_num_seqs
        self.engine = Engine(model, kv_cache_memory_bytes=kv_bytes, max_num_seqs=max_num_seqs)
        self.budget = model.decoder.config.max_position_embeddings + max_num_seqs
        self.prompts: Tokens = []  # those of the decode that is going on
        self.going: list[Request] = []  # its requests
        self.seen = 1  # tokens of each that were returned; the first to begin are a few ahead of it

    def prefill(self, prompt: list[int], budget: int) -> Sample:
        self._stop()
        self._limit(budget)
        ms, done = self.watch.time(lambda: self.engine.generate([prompt], FIRST))
        return Sample(ms, [completion.token_ids for completion in done])

    def decode(self, prompts: Tokens, new_tokens: int) -> Sample:
        if prompts != self.prompts:
            self._begin(prompts)
        ms, _ = self.watch.time(lambda: [self.engine.step() for _ in range(new_tokens)])
        self.seen += new_tokens
        return Sample(ms, [request.output_token_ids[self.seen - new_tokens : self.seen] for request in self.going])

    def meet(self, prompts: Tokens, prompt: list[int], budget: int) -> Meeting:
        self._begin(prompts)
        self._limit(budget)
        late = self.engine.submit(prompt, FIRST)
        steps = []
        while not late.output_token_ids:
            steps.append(self.watch.time(self.engine.step)[0])
        self._stop()
        return met(steps, late.output_token_ids[0])

    def _begin(self, prompts: Tokens) -> None:
        """Compute the prompts to their first tokens."""
        self._stop()
        self._limit(self.budget)
        self.prompts, self.seen = prompts, 1
        self.going = [self.engine.submit(prompt, MANY) for prompt in prompts]
        while not all(request.output_token_ids for request in self.going):
            self.engine.step()

    def _stop(self) -> None:
        for request in self.going:
            self.engine.abort(request.request_id)
        self.prompts, self.going = [], []

    def _limit(self, budget: int) -> None:
        scheduler = self.engine.loop.scheduler
        seqs = min(budget, self.max_num_seqs)
        scheduler.config = replace(scheduler.config, max_num_batched_tokens=budget, max_num_seqs=seqs)
