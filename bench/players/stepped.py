"""An engine that goes on step by step, all its requests together, as ours and vLLM do."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from bench.player import MAX_TOKENS, Meeting, Refused, Sample, Stopwatch, Tokens, met


class StepEngine(Protocol):
    """What is asked of such an engine; its requests go by names of its own choice."""

    def limit(self, budget: int) -> None:
        """From now on a step has so many tokens at most."""
        ...

    def submit(self, prompt: list[int], max_tokens: int) -> str: ...

    def step(self) -> Mapping[str, Sequence[int]]:
        """One step; all tokens so far of each request that got one."""
        ...

    def abort(self, requests: Sequence[str]) -> None: ...


class Stepped:
    """A Player made of it. `budget` is enough for all prompts of a batch at once."""

    def __init__(self, name: str, engine: StepEngine, budget: int, watch: Stopwatch) -> None:
        self.name, self.engine, self.budget, self.watch = name, engine, budget, watch
        self.prompts: Tokens = []  # those of the decode that is going on
        self.going: list[str] = []  # its requests
        self.seen = 1  # tokens of each that were returned; the first to begin are a few ahead of it

    def prefill(self, prompt: list[int], budget: int) -> Sample:
        self._stop()
        self.engine.limit(budget)
        request = self.engine.submit(prompt, 1)
        ms, tokens = self.watch.time(lambda: self._first_tokens([request])[0])
        return Sample(ms, [tokens])

    def decode(self, prompts: Tokens, new_tokens: int) -> Sample:
        if prompts != self.prompts:
            self._begin(prompts)
        ms, outputs = self.watch.time(lambda: [self.engine.step() for _ in range(new_tokens)])
        self.seen += new_tokens
        return Sample(ms, [list(outputs[-1][one][self.seen - new_tokens : self.seen]) for one in self.going])

    def meet(self, prompts: Tokens, prompt: list[int], budget: int) -> Meeting:
        self._begin(prompts)
        self.engine.limit(budget)
        late = self.engine.submit(prompt, 1)
        steps: list[float] = []
        tokens: Sequence[int] | None = None
        while not tokens:
            ms, outputs = self.watch.time(self.engine.step)
            steps.append(ms)
            tokens = outputs.get(late)
        self._stop()
        return met(steps, tokens[0])

    def _begin(self, prompts: Tokens) -> None:
        """Compute the prompts to their first tokens."""
        self._stop()
        self.engine.limit(self.budget)
        self.prompts, self.seen = prompts, 1
        self.going = [self.engine.submit(prompt, MAX_TOKENS) for prompt in prompts]
        self._first_tokens(self.going)

    def _first_tokens(self, requests: Sequence[str]) -> Tokens:
        """Step until the same step gives all of them a token. Raises Refused if they end before one does."""
        for _ in range(MAX_TOKENS):
            outputs = self.engine.step()
            if all(map(outputs.get, requests)):
                return [list(outputs[request]) for request in requests]
        raise Refused(f"{self.name}: in {MAX_TOKENS} steps no one gave all {len(requests)} requests a token")

    def _stop(self) -> None:
        self.engine.abort(self.going)
        self.prompts, self.going = [], []
