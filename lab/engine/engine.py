"""Text or tokens in, text and tokens out: a model behind the loop."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import index

from lab.core import (
    CacheConfig,
    ConfigError,
    FinishReason,
    Loop,
    Request,
    RequestRejected,
    SamplingParams,
    Scheduler,
    SchedulerConfig,
    StepRecord,
)
from lab.core.config import require_at_least
from lab.engine.executor import TorchExecutor
from lab.engine.swap import SwappingExecutor, host_store
from lab.model.attention import AttentionBackend, select_backend
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.model.weights import LoadedModel
from lab.policies.swap import Swap

DEFAULT_KV_CACHE_BYTES = 512 * 2**20

Prompt = str | Sequence[int]


@dataclass(frozen=True)
class Completion:
    """What became of one prompt. `text` is None if the model has no tokenizer."""

    request_id: str
    token_ids: list[int]
    text: str | None
    finish_reason: FinishReason


class Engine:
    """Serves requests with one model on one device.

    `generate` runs a list of prompts to their end; `stream` yields one prompt's tokens as they come, beside whatever
    else the engine serves; `abort` ends a request between two steps. `limits` are those of
    `SchedulerConfig.with_defaults`. The KV cache takes `kv_cache_memory_bytes`, in blocks of `block_size` tokens;
    `swap_space_bytes` more in host memory hold the KV of preempted requests, if `scheduler_type` is one that swaps.
    """

    def __init__(
        self,
        model: LoadedModel,
        *,
        kv_cache_memory_bytes: int = DEFAULT_KV_CACHE_BYTES,
        block_size: int = 16,
        attention: str | None = None,
        scheduler_type: type[Scheduler] = Scheduler,
        swap_space_bytes: int = 0,
        **limits,
    ) -> None:
        decoder = model.decoder
        positions = decoder.config.max_position_embeddings
        if limits.get("max_model_len") is None:
            limits["max_model_len"] = positions
        config = SchedulerConfig.with_defaults(**limits)
        if limits["max_model_len"] > positions:
            raise ConfigError(
                f"max_model_len is {limits['max_model_len']}; the model has {positions} positions, no more"
            )
        require_at_least("block_size", block_size, 1)
        block_bytes = block_size * KVStore.bytes_per_token(decoder.config, decoder.dtype)
        if kv_cache_memory_bytes < block_bytes:
            raise ConfigError(
                f"kv_cache_memory_bytes is {kv_cache_memory_bytes}; a block of {block_size} tokens takes {block_bytes}"
            )
        cache = CacheConfig(
            kv_cache_memory_bytes // block_bytes, block_size, num_cpu_blocks=swap_space_bytes // block_bytes
        )
        if cache.num_cpu_blocks and not issubclass(scheduler_type, Swap):
            raise ConfigError(f"{scheduler_type.__name__} does not swap; leave swap_space_bytes at 0 or use Swap")
        self.attention = select_backend(attention, decoder.config, decoder.device, decoder.dtype, block_size)
        self.model = model
        self.loop = Loop(scheduler_type(config, cache), make_executor(decoder, cache, self.attention.backend))
        self._ids = count()

    # -- the three calls ----------------------------------------------------------------------------------------------

    def generate(self, prompts: Sequence[Prompt], sampling: SamplingParams | None = None) -> list[Completion]:
        """Run the prompts together to their end. If one is refused, none is run."""
        requests: list[Request] = []
        try:
            for prompt in prompts:
                requests.append(self.submit(prompt, sampling))
            while any(request.finish_reason is None for request in requests):
                self.step()
        finally:  # refused, interrupted or out of memory: leave nothing of this call behind
            for request in requests:
                self._drop(request)
        return [self.completion(request) for request in requests]

    def stream(
        self, prompt: Prompt, sampling: SamplingParams | None = None, request_id: str | None = None
    ) -> Iterator[int]:
        """The tokens of one prompt as they are sampled. Closing the iterator aborts the request."""
        return self.tokens(self.submit(prompt, sampling, request_id))

    def abort(self, request_id: str) -> bool:
        """End a request now and free its blocks; False if it is unknown or already over."""
        return self.loop.abort(request_id)

    # -- their parts --------------------------------------------------------------------------------------------------

    def submit(
        self,
        prompt: Prompt,
        sampling: SamplingParams | None = None,
        request_id: str | None = None,
        *,
        priority: int = 0,
    ) -> Request:
        """Queue a prompt. Raises `RequestRejected`, with nothing changed, for one that can't be served.

        `priority` counts under the policy of that name: the lowest goes first.
        """
        if request_id is None:
            ids = (f"request-{number}" for number in self._ids)
            request_id = next(name for name in ids if name not in self.loop.scheduler.requests)
        sampling = sampling or SamplingParams()
        sampling = replace(sampling, stop_token_ids=sampling.stop_token_ids | self.model.decoder.config.eos_token_ids)
        request = Request(request_id, self._token_ids(prompt), sampling, priority, arrival=self.loop.clock.now())
        self.loop.submit(request)
        return request

    def step(self) -> StepRecord:
        return self.loop.step()

    def tokens(self, request: Request) -> Iterator[int]:
        """The tokens of a submitted request as they are sampled. Closing the iterator aborts the request."""
        tokens = self._tokens(request)
        next(tokens)  # a generator that has not begun has no `finally` yet
        return tokens

    def _tokens(self, request: Request) -> Iterator[int]:
        sent = 0
        try:
            yield -1  # no token: it has begun
            while True:
                while sent == len(request.output_token_ids) and request.finish_reason is None:
                    self.step()
                if sent == len(request.output_token_ids):
                    return
                yield request.output_token_ids[sent]
                sent += 1
        finally:
            self._drop(request)

    def _drop(self, request: Request) -> None:
        """Abort the request, but not another one that has its id now that it is over."""
        if request.finish_reason is None:
            self.abort(request.request_id)

    def completion(self, request: Request) -> Completion:
        """What became of a finished request."""
        assert request.finish_reason is not None, f"{request.request_id} is not finished"
        ids = request.output_token_ids
        return Completion(request.request_id, ids, self.decode(ids), request.finish_reason)

    # -- text ---------------------------------------------------------------------------------------------------------

    def decode(self, token_ids: Sequence[int]) -> str | None:
        """The text of the tokens; None if the model has no tokenizer."""
        tokenizer = self.model.tokenizer
        return None if tokenizer is None else tokenizer.decode(token_ids, skip_special_tokens=True)

    def pieces(self, tokens: Iterable[int]) -> Iterator[str]:
        """The text of a stream of tokens, piece by piece; a character that is not complete yet is held back."""
        ids: list[int] = []
        sent = ""
        for token in tokens:
            ids.append(token)
            text = self.decode(ids) or ""
            if not text.endswith("\ufffd"):
                yield text[len(sent) :]
                sent = text
        yield (self.decode(ids) or "")[len(sent) :]

    def chat(self, message: str) -> list[int]:
        """The message as the model's chat template puts it to the model. Raises `RequestRejected` if it has none."""
        tokenizer = self.model.tokenizer
        if tokenizer is None or tokenizer.chat_template is None:
            raise RequestRejected(f"the model {self.model.name!r} has no chat template; give the text as it is")
        messages = [{"role": "user", "content": message}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(tokenizer.encode(text, add_special_tokens=False))  # the template has written them

    def _token_ids(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return self.model.encode(prompt)
        return check_token_ids(prompt, self.model.decoder.config.vocab_size)


def make_executor(decoder: Decoder, cache: CacheConfig, attention: AttentionBackend) -> TorchExecutor:
    """An executor with its KV pool on the decoder's device, and one in host memory if there are blocks for it."""
    store = KVStore(decoder.config, cache.num_blocks, cache.block_size, dtype=decoder.dtype, device=decoder.device)
    if cache.num_cpu_blocks == 0:
        return TorchExecutor(decoder, store, attention)
    return SwappingExecutor(decoder, store, attention, host_store(store, decoder.config, cache.num_cpu_blocks))


def check_token_ids(token_ids: Iterable[int], vocab_size: int) -> list[int]:
    """The ids as plain integers. Raises `RequestRejected` unless all are integers (also numpy's and PyTorch's) and in
    the vocabulary: on a GPU one that isn't would end the process."""
    try:
        ids = [index(token) for token in token_ids]
    except TypeError as error:
        raise RequestRejected(f"the prompt is no sequence of token ids ({error}); give text or integers") from None
    for token in ids:
        if not 0 <= token < vocab_size:
            raise RequestRejected(f"token id {token} is outside the vocabulary; it has ids 0 to {vocab_size - 1}")
    return ids
