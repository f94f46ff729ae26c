"""The experiments that `python -m lab record` runs and keeps, by suite."""

from collections.abc import Callable, Iterator

from lab.checks.equivalence import PrefillRow, check_prefill, random_prompt
from lab.measure.environment import environment
from lab.measure.records import Record, Row
from lab.model.device import dtype_name, resolve_device, supported_dtypes
from lab.model.weights import load_model

PROMPT_TOKENS = 1024
CHUNK_SIZES = (64, 128, 256, 512)
REPEATS = 5
BLOCK_SIZE = 16
UNITS = {
    "median_ms": "ms",
    "min_ms": "ms",
    "max_ms": "ms",
    "peak_bytes": "bytes",
    "kv_bytes": "bytes",
    "kv_delta": "max over layers",
    "logits_delta": "max over positions",
    "error_ratio": "of the whole pass's error",
    "match": "verdict",
}

Suite = Callable[[str, str | None, int], Iterator[tuple[Record, bool]]]


def prefill_suite(model: str, device: str | None, seed: int) -> Iterator[tuple[Record, bool]]:
    """Chunked against whole in every dtype the device computes in, but float64: values, memory and time."""
    target = resolve_device(device)
    for dtype in supported_dtypes(target):
        if dtype == "float64":
            continue
        loaded = load_model(model, dtype=dtype, device=target, seed=seed)
        prompt = random_prompt(loaded.decoder, PROMPT_TOKENS, seed)
        report = check_prefill(loaded.decoder, prompt, CHUNK_SIZES, block_size=BLOCK_SIZE, repeats=REPEATS)
        parameters = {
            "model": loaded.name,
            "source": loaded.source,
            "dtype": dtype_name(report.dtype),
            "attention": report.attention,
            "prompt_tokens": report.prompt_tokens,
            "block_size": BLOCK_SIZE,
            "repeats": REPEATS,
            "seed": seed,
        }
        rows = [record_row(row) for row in report.rows]
        yield Record(f"prefill-{dtype}", parameters, rows, environment(target), UNITS), report.ok


def record_row(row: PrefillRow) -> Row:
    return {
        "chunk_size": row.chunk_size,
        "chunks": row.chunks,
        "median_ms": row.timing.median,
        "min_ms": row.timing.min,
        "max_ms": row.timing.max,
        "peak_bytes": row.peak_bytes,
        "kv_bytes": row.kv_bytes,
        "kv_delta": max(d.delta for d in row.kv),
        "logits_delta": row.logits.delta,
        "error_ratio": row.error_ratio,
        "match": row.ok,
    }


SUITES: dict[str, Suite] = {"prefill": prefill_suite}
