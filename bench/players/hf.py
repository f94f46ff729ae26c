"""transformers: its `generate` for a prompt, bare forward passes for decode, which spares it generate's bookkeeping."""

import torch
import transformers
from transformers import DynamicCache, LlamaForCausalLM

from bench.player import Meeting, Refused, Sample, Stopwatch, Tokens


class HuggingFace:
    def __init__(self, model: LlamaForCausalLM, watch: Stopwatch) -> None:
        self.name = f"transformers {transformers.__version__}"
        self.model = model
        self.watch = watch
        self.prompts: Tokens = []  # those of the decode that is going on

    def prefill(self, prompt: list[int], budget: int) -> Sample:
        ids = torch.tensor([prompt], device=self.model.device)
        chunk = budget if budget < len(prompt) else None
        options = {"max_new_tokens": 1, "do_sample": False, "prefill_chunk_size": chunk}
        ms, out = self.watch.time(lambda: self.model.generate(ids, **options))
        return Sample(ms, out[:, len(prompt) :].tolist())

    @torch.inference_mode()
    def decode(self, prompts: Tokens, new_tokens: int) -> Sample:
        if prompts != self.prompts:
            self.prompts, self.cache = prompts, DynamicCache(config=self.model.config)
            self.last = self._next(torch.tensor(prompts, device=self.model.device))
        ms, tokens = self.watch.time(lambda: torch.cat([self._step() for _ in range(new_tokens)], 1))
        return Sample(ms, tokens.tolist())

    def meet(self, prompts: Tokens, prompt: list[int], budget: int) -> Meeting:
        raise Refused("generate takes no prompt while it answers others")

    def _step(self) -> torch.Tensor:
        self.last = self._next(self.last)
        return self.last

    def _next(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(ids, cache=self.cache, logits_to_keep=1).logits.argmax(-1)
