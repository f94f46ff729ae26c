"""llama.cpp, through llama-cpp-python: one sequence, chunks by its `n_ubatch`. It needs a C++ compiler to install."""

from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from bench.player import Meeting, Refused, Sample, Stopwatch, Tokens


class LlamaCpp:
    def __init__(self, path: str, max_model_len: int, threads: int, watch: Stopwatch) -> None:
        self.name = f"llama.cpp ({version('llama-cpp-python')})"
        self.path, self.max_model_len, self.threads = path, max_model_len, threads
        self.watch = watch
        self.context = cache(self._context)
        self.prompts: Tokens = []  # those of the decode that is going on

    def prefill(self, prompt: list[int], budget: int) -> Sample:
        llama = self.context(min(budget, self.max_model_len))
        llama.reset()
        ms, _ = self.watch.time(lambda: llama.eval(prompt))
        return Sample(ms, [[self._best(llama)]])

    def decode(self, prompts: Tokens, new_tokens: int) -> Sample:
        if len(prompts) > 1:
            raise Refused("llama-cpp-python's Llama computes one sequence")
        llama = self.context(self.max_model_len)
        if prompts != self.prompts:
            llama.reset()
            llama.eval(prompts[0])
            self.prompts, self.last = prompts, self._best(llama)
        ms, tokens = self.watch.time(lambda: [self._step(llama) for _ in range(new_tokens)])
        return Sample(ms, [tokens])

    def meet(self, prompts: Tokens, prompt: list[int], budget: int) -> Meeting:
        raise Refused("llama-cpp-python's Llama computes one sequence")

    def _step(self, llama: Any) -> int:
        llama.eval([self.last])
        self.last = self._best(llama)
        return self.last

    @staticmethod
    def _best(llama: Any) -> int:
        """The last row's most likely token; `scores` would hold it only beside those of all rows."""
        return int(np.ctypeslib.as_array(llama._ctx.get_logits_ith(-1), shape=(llama.n_vocab(),)).argmax())

    def _context(self, ubatch: int) -> Any:
        from llama_cpp import Llama

        sizes = {"n_ctx": self.max_model_len, "n_batch": self.max_model_len, "n_ubatch": ubatch}
        threads = {"n_threads": self.threads, "n_threads_batch": self.threads}
        return Llama(self.path, **sizes, **threads, verbose=False)
