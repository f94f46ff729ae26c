"""The transient peak of a prefill, in bytes: counted, beside the ledger's closed form and beside transformers."""

from collections.abc import Iterator

import torch

from bench.models import TINY, Pair, llama
from bench.prefill import QUICK
from bench.table import Row, Run, Table
from lab.measure.ledger import Step, kv_bytes, prefill_steps, step_peak
from lab.measure.memory import PeakMemory
from lab.measure.steps import StepRunner
from lab.measure.work import prefill_pieces
from lab.model.attention import select_backend
from lab.model.device import DTYPES, resolve_device

BLOCK_SIZE = 16
CASES = [(4096, 4096), (4096, 512), (8192, 8192), (8192, 512)]
UNITS = {
    "peak_bytes": "bytes",
    "predicted_bytes": "bytes",
    "transformers_bytes": "bytes beside its KV cache",
    "ratio": "counted / closed form",
}


def rows(run: Run) -> Iterator[Row]:
    for dtype in run.dtypes:
        pair = llama(DTYPES[dtype], resolve_device(), **(TINY if run.quick else {}))
        for tokens, chunk in run.in_time(QUICK if run.quick else CASES, dtype):
            predicted, peak = _ours(pair, tokens, chunk)
            yield {
                "dtype": dtype,
                "tokens": tokens,
                "chunk": chunk,
                "peak_bytes": peak,
                "predicted_bytes": predicted,
                "transformers_bytes": _theirs(pair, tokens, chunk),
                "ratio": peak / predicted,
                "goal": 1.0,
            }


def _ours(pair: Pair, tokens: int, chunk: int) -> tuple[int, int]:
    """The closed form, and what is counted."""
    decoder = pair.ours.decoder
    backend = select_backend(None, decoder.config, decoder.device, decoder.dtype, BLOCK_SIZE).backend
    whole = Step(decoder.config, tokens, tokens, decoder.dtype, backend, decoder.device, BLOCK_SIZE)
    runner = StepRunner(decoder, backend, tokens, block_size=BLOCK_SIZE)
    with PeakMemory(device=decoder.device) as memory:
        runner.prefill(prefill_pieces(tokens, chunk))()
    return max(step_peak(step).nbytes for step in prefill_steps(whole, chunk)), memory.peak_bytes


@torch.inference_mode()
def _theirs(pair: Pair, tokens: int, chunk: int) -> int:
    """Counted over `generate`, less the KV cache, which it makes on its way and we have beforehand."""
    ids = torch.tensor([pair.prompt(tokens)], device=pair.theirs.device)
    options = {"max_new_tokens": 1, "do_sample": False, "prefill_chunk_size": chunk if chunk < tokens else None}
    with PeakMemory(device=ids.device) as memory:
        pair.theirs.generate(ids, **options)
    return memory.peak_bytes - kv_bytes(pair.ours.decoder.config, tokens, pair.ours.decoder.dtype)


TABLE = Table("what a prefill needs in memory for a while", rows, UNITS, seconds=60)
