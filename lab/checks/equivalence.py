"""Is a prompt computed in chunks the same as in one pass? KV cache and logits of every position, memory and time.

Two tests, beside each other. Against the same model in higher precision: chunking may change how results are rounded,
it must not make them less accurate, so error(chunked) <= 2 * error(whole) + floor. And an absolute bound, on the
difference from the whole pass, and on the error, in case the whole pass is wrong too. A rounding difference passes all
of it, a bug of `lab.checks.faults` fails.
"""

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from lab.checks.prefill import Prefill
from lab.core.config import require_at_least
from lab.engine.engine import check_token_ids
from lab.engine.executor import TorchExecutor
from lab.measure.memory import PeakMemory
from lab.measure.steps import BLOCK_SIZE, backend_of
from lab.measure.timing import Timing
from lab.model.attention import AttentionBackend
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore

# float64 has none here: it is held to the absolute bound alone.
HIGHER_PRECISION = {torch.float32: torch.float64, torch.bfloat16: torch.float32, torch.float16: torch.float32}

# In units of eps(dtype) * max |reference|, for the distance from the whole pass and from the reference. Rounding errors
# add up over the layers: SmolLM2's 30 reach 41 in float32, and 13 in bfloat16, which rounds only what a kernel returns,
# not what it sums. The planted faults reach 100,000 in float32.
ABSOLUTE_BOUND = {torch.float64: 512.0, torch.float32: 512.0, torch.bfloat16: 32.0, torch.float16: 32.0}
FLOOR = 4.0  # where the whole pass happens to be exact, rounding the chunked one differently is no fault
ROWS_AT_ONCE = 256  # logits of all positions are compared in slices: whole they are L * vocab * 8 bytes


@dataclass(frozen=True)
class Difference:
    """One quantity of a chunked run: its largest distance from the whole run and from the higher precision."""

    delta: float  # max |chunked - whole|
    error: float  # max |chunked - reference|
    whole_error: float  # max |whole - reference|
    scale: float  # max |reference|

    @property
    def error_ratio(self) -> float:
        """Error of the chunked run as a multiple of the whole one's; 1.0 if both are exact."""
        return 1.0 if self.error == self.whole_error else self.error / max(self.whole_error, sys.float_info.min)

    def problem(self, dtype: torch.dtype) -> str | None:
        """What is wrong with it, or None. Written so that a NaN is wrong."""
        unit = torch.finfo(dtype).eps * self.scale
        bound = ABSOLUTE_BOUND[dtype] * unit
        for name, value in (("max |delta|", self.delta), ("error", self.error)):
            if not value <= bound:
                return f"{name} {value:.3g} is above {bound:.3g}"
        if dtype in HIGHER_PRECISION and not self.error <= 2 * self.whole_error + FLOOR * unit:
            return f"error {self.error:.3g} is above twice the whole pass's {self.whole_error:.3g}"
        return None


@dataclass(frozen=True)
class PrefillRow:
    """The prompt at one chunk size. Bytes are counted, times are milliseconds of the whole prompt."""

    chunk_size: int
    chunks: int
    timing: Timing
    peak_bytes: int  # transient: above weights and KV cache, which were there before
    kv_bytes: int  # written
    kv: tuple[Difference, ...]  # by layer, keys and values together
    logits: Difference  # of all positions
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def error_ratio(self) -> float:
        """The largest error of the run, as a multiple of the whole pass's."""
        return max(d.error_ratio for d in (*self.kv, self.logits))


@dataclass(frozen=True)
class PrefillReport:
    prompt_tokens: int
    dtype: torch.dtype
    attention: str
    kv_bytes: int  # by the formula 2 * layers * kv_heads * head_dim * L * itemsize
    rows: tuple[PrefillRow, ...]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)


class PrefillCheck:
    """The comparison of one model on one prompt: the whole pass and the reference are computed once.

    Raises `LabError` for an empty prompt, a token outside the vocabulary or a prompt beyond the position limit.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompt: Sequence[int],
        *,
        attention: AttentionBackend,
        block_size: int = BLOCK_SIZE,
        executor_type: type[TorchExecutor] = TorchExecutor,
    ) -> None:
        require_at_least("the number of prompt tokens", len(prompt), 1)
        check_token_ids(prompt, decoder.config.vocab_size)
        self.decoder = decoder
        self.prompt = prompt
        self.options: dict[str, Any] = {"attention": attention, "block_size": block_size}
        self.executor_type = executor_type
        self.reference = self._reference().run()
        self.whole = self.prefill(len(prompt), keep_hidden=True).run()

    def prefill(self, chunk_size: int, **options: Any) -> Prefill:
        return Prefill(
            self.decoder, self.prompt, chunk_size, executor_type=self.executor_type, **self.options, **options
        )

    def _reference(self) -> Prefill:
        dtype = HIGHER_PRECISION.get(self.decoder.dtype, self.decoder.dtype)
        decoder = self.decoder.to(dtype)
        # Not the backend of the check: varlen, for one, knows half precision only.
        own = {"attention": backend_of(decoder, block_size=self.options["block_size"])}
        return Prefill(decoder, self.prompt, len(self.prompt), keep_hidden=True, **self.options | own)

    @property
    def kv_bytes(self) -> int:
        """What a prompt of this length must write."""
        return KVStore.bytes_per_token(self.decoder.config, self.decoder.dtype) * len(self.prompt)

    def rows(self, chunk_sizes: Sequence[int], repeats: int) -> Iterator[PrefillRow]:
        """Run the chunk sizes in turn, a first time to warm up and `repeats` times for the clock, and compare the last.

        In turn, so that whatever else the machine does falls on all of them.
        """
        ms: dict[int, list[float]] = {size: [] for size in chunk_sizes}
        runs: dict[int, Prefill] = {}
        for _ in tqdm(range(1 + repeats), desc="runs", leave=False, disable=None):
            for size in chunk_sizes:
                runs[size] = self.prefill(size, keep_hidden=True).run()
                ms[size].append(runs[size].milliseconds)
        for size, run in runs.items():
            timing = Timing(tuple(ms[size][1:]), warmup=tuple(ms[size][:1]))
            kv, logits = self.compare(run)
            problems = self.problems(run, kv, logits)
            peak = self.peak_bytes(size)
            yield PrefillRow(size, len(run.plan), timing, peak, run.kv_bytes, kv, logits, problems)

    def peak_bytes(self, chunk_size: int) -> int:
        """Peak of the transient memory, which is all that a run allocates after its KV cache is there."""
        prefill = self.prefill(chunk_size)
        with PeakMemory(device=self.decoder.device) as memory:
            prefill.run()
        return memory.peak_bytes

    def compare(self, run: Prefill) -> tuple[tuple[Difference, ...], Difference]:
        """KV of each layer, and logits of all positions."""
        layers = range(self.decoder.config.num_hidden_layers)
        kv = tuple(difference([(run.kv(layer), self.whole.kv(layer), self.reference.kv(layer))]) for layer in layers)
        return kv, difference(self._logits(run))

    @torch.inference_mode()
    def _logits(self, run: Prefill) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        hidden, whole, reference = run.hidden, self.whole.hidden, self.reference.hidden
        for rows in (slice(i, i + ROWS_AT_ONCE) for i in range(0, len(hidden), ROWS_AT_ONCE)):
            yield (
                self.decoder.logits(hidden[rows]),
                self.decoder.logits(whole[rows]),
                self.reference.decoder.logits(reference[rows]),
            )

    def problems(self, run: Prefill, kv: Sequence[Difference], logits: Difference) -> tuple[str, ...]:
        """Everything that is wrong with a run; empty if it matches."""
        named = [("logits", logits), *((f"KV of layer {layer}", d) for layer, d in enumerate(kv))]
        wrong = [(name, d.problem(self.decoder.dtype)) for name, d in named]
        found = [f"{name}: {problem}" for name, problem in wrong if problem][:2]  # later layers follow from the first
        if run.kv_bytes != self.kv_bytes:
            found.append(f"{run.kv_bytes} bytes of KV were written, not {self.kv_bytes}")
        if run.steps_that_sampled != 1:
            found.append(f"{run.steps_that_sampled} steps yielded a token, not 1")
        if not torch.equal(run.sampled_logits, self.decoder.logits(run.hidden[-1:])):
            found.append("the token was not sampled from the last row's logits")
        return tuple(found)


def check_prefill(
    decoder: Decoder,
    prompt: Sequence[int],
    chunk_sizes: Sequence[int],
    *,
    attention: str | None = None,
    block_size: int = BLOCK_SIZE,
    repeats: int = 3,
    executor_type: type[TorchExecutor] = TorchExecutor,
) -> PrefillReport:
    """Compute the prompt whole and with each chunk size; one row each, the whole pass last.

    Raises `LabError` for a chunk size or a number of repeats below 1, and for what `PrefillCheck` refuses.
    """
    require_at_least("repeats", repeats, 1)
    for chunk_size in chunk_sizes:
        require_at_least("chunk size", chunk_size, 1)
    backend = backend_of(decoder, attention, block_size)
    check = PrefillCheck(decoder, prompt, attention=backend, block_size=block_size, executor_type=executor_type)
    sizes = list(dict.fromkeys([*chunk_sizes, len(prompt)]))
    return PrefillReport(len(prompt), decoder.dtype, backend.name, check.kv_bytes, tuple(check.rows(sizes, repeats)))


def difference(parts: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Difference:
    """Of (chunked, whole, reference) triples of tensors, the maxima over all of them."""
    maxima = [
        torch.stack([(run - whole).abs().max(), (run - reference).abs().max(), (whole - reference).abs().max(),
                     reference.abs().max()])
        for run, whole, reference in ((r.to(h.dtype), w.to(h.dtype), h) for r, w, h in parts)
    ]  # fmt: skip
    return Difference(*torch.stack(maxima).amax(0).tolist())


def random_prompt(decoder: Decoder, num_tokens: int, seed: int = 0) -> list[int]:
    """Token ids drawn from the whole vocabulary."""
    require_at_least("the number of prompt tokens", num_tokens, 1)
    return random.Random(seed).choices(range(decoder.config.vocab_size), k=num_tokens)
