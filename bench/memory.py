"""The transient peak of a prefill, in bytes: counted, beside the ledger's closed form and beside transformers."""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from bench.models import TINY, Pair, llama
from bench.prefill import QUICK
from bench.table import Row, Run, Table
from lab.checks.rows import memory_row
from lab.measure.ledger import kv_bytes
from lab.measure.memory import PeakMemory
from lab.model.device import DTYPES, resolve_device

CASES = [(4096, 4096), (4096, 512), (8192, 8192), (8192, 512)]
UNITS = {
    "peak_bytes": "bytes",
    "predicted_bytes": "bytes",
    "transformers_bytes": "bytes beside its KV cache",
    "ratio": "counted / closed form",
}


class Prefill(NamedTuple):
    dtype: str
    tokens: int
    chunk: int


def rows(run: Run) -> Iterator[Row]:
    for dtype in run.dtypes:
        pair = llama(DTYPES[dtype], resolve_device(), **(TINY if run.quick else {}))
        for case in run.in_time([Prefill(dtype, *sizes) for sizes in (QUICK if run.quick else CASES)], dtype):
            ours = memory_row(pair.ours.decoder, None, case.tokens, case.chunk)
            yield {
                **case._asdict(),
                "peak_bytes": ours["peak_bytes"],
                "predicted_bytes": ours["predicted_bytes"],
                "transformers_bytes": _theirs(pair, case.tokens, case.chunk),
                "ratio": ours["peak_bytes"] / ours["predicted_bytes"],
                "goal": 1.0,
            }


@torch.inference_mode()
def _theirs(pair: Pair, tokens: int, chunk: int) -> int:
    """Counted over `generate`, less the KV cache, which it makes on its way and we have beforehand."""
    ids = torch.tensor([pair.prompt(tokens)], device=pair.theirs.device)
    options = {"max_new_tokens": 1, "do_sample": False, "prefill_chunk_size": chunk if chunk < tokens else None}
    with PeakMemory(device=ids.device) as memory:
        pair.theirs.generate(ids, **options)
    return memory.peak_bytes - kv_bytes(pair.ours.decoder.config, tokens, pair.ours.decoder.dtype)


TABLE = Table("what a prefill needs in memory for a while", rows, UNITS, seconds=120)
