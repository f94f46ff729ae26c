"""A prompt under a memory cap: whole it runs out of memory, in chunks it fits.

rows = capped_prefill(decoder, prompt, [512, 4096], cap=lambda: MemoryCap(48 * 2**20))
rows = kernel_capped_prefill(4096, [512, 4096], 48 * 2**20)   # in a process of its own, the kernel refuses
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace

from lab.checks.equivalence import random_prompt
from lab.checks.prefill import Prefill
from lab.core.config import require_at_least
from lab.core.errors import LabError
from lab.measure.cap import OutOfMemory, process_cap
from lab.measure.ledger import Step, prefill_steps, step_peak
from lab.measure.memory import PeakMemory
from lab.measure.steps import BLOCK_SIZE, backend_of
from lab.model.decoder import Decoder
from lab.model.device import resolve_device
from lab.model.tiny import TINY, random_weights

Cap = Callable[[], AbstractContextManager[object]]

# Wide enough for its transient memory to stand out of a process; 4,096 tokens take seconds on one core.
WIDE = replace(TINY["tiny"], hidden_size=512, intermediate_size=2048, num_attention_heads=8, head_dim=64,
               max_position_embeddings=8192)  # fmt: skip


@dataclass(frozen=True)
class CappedRow:
    """One chunk size under the cap. `refused` is what the cap said, None if the prompt fitted."""

    chunk_size: int
    chunks: int
    predicted_bytes: int  # transient peak by the ledger
    peak_bytes: int  # counted, until the end or the refusal
    refused: str | None
    computed_tokens: int  # of the prompt, after the refusal: whole chunks, the failed one taken back
    leaked_bytes: int  # transient bytes still alive after it
    token: int  # sampled: at once, or when the refused step is tried again with the cap gone

    @property
    def fits(self) -> bool:
        return self.refused is None


def capped_prefill(
    decoder: Decoder,
    prompt: Sequence[int],
    chunk_sizes: Sequence[int],
    cap: Cap,
    *,
    attention: str | None = None,
    block_size: int = BLOCK_SIZE,
) -> list[CappedRow]:
    """Run the prompt at each chunk size under a cap made by `cap`, which covers neither weights nor KV cache.

    After a refusal the loop has taken the step back, so the same engine finishes the prompt once the cap is gone.
    """
    require_at_least("the number of prompt tokens", len(prompt), 1)
    backend = backend_of(decoder, attention, block_size)
    whole = Step(decoder.config, len(prompt), len(prompt), decoder.dtype, backend, decoder.device, block_size)
    rows = []
    for size in chunk_sizes:
        require_at_least("chunk size", size, 1)
        steps = prefill_steps(whole, size)
        prefill = Prefill(decoder, prompt, size, attention=backend, block_size=block_size)
        with PeakMemory(device=decoder.device) as memory:
            refused = _run(prefill, cap)
        computed = prefill.request.num_computed_tokens if refused else len(prompt)
        prefill.run()  # what is left of it, if anything
        rows.append(
            CappedRow(
                chunk_size=size,
                chunks=len(steps),
                predicted_bytes=max(step_peak(step).nbytes for step in steps),
                peak_bytes=memory.peak_bytes,
                refused=refused,
                computed_tokens=computed,
                leaked_bytes=memory.live_bytes,
                token=prefill.request.output_token_ids[0],
            )
        )
    return rows


def _run(prefill: Prefill, cap: Cap) -> str | None:
    try:
        with cap():
            prefill.run()
    except OutOfMemory as error:
        return str(error)
    return None


def kernel_capped_prefill(length: int, chunk_sizes: Sequence[int], nbytes: int, seed: int = 0) -> list[CappedRow]:
    """`capped_prefill` of the model `WIDE` in a new process that Linux gives `nbytes` more than it has with its model.

    One thread, float32. Raises LabError where there is no Linux, and with the last line of a process that failed.
    """
    arguments = json.dumps([length, list(chunk_sizes), nbytes, seed])
    # Freed memory goes back to the kernel at once, so that none of it can be used again in secret.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "lab.checks.capped", arguments], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise LabError(f"the capped process failed: {(done.stderr.strip() or 'it was killed').splitlines()[-1]}")
    return [CappedRow(**row) for row in json.loads(done.stdout)]


def _main(arguments: str) -> None:
    length, chunk_sizes, nbytes, seed = json.loads(arguments)
    decoder = Decoder(WIDE, random_weights(WIDE, seed)).to(device=resolve_device("cpu"))
    prompt = random_prompt(decoder, length, seed)
    capped_prefill(decoder, prompt[:64], [32], nullcontext)  # what PyTorch takes once and keeps is taken before
    rows = capped_prefill(decoder, prompt, chunk_sizes, lambda: process_cap(nbytes))
    print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    _main(sys.argv[1])
