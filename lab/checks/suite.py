"""The experiments that `python -m lab record` runs and keeps, by suite. Each has one record a dtype.

for job in jobs(["memory", "cost"], device):
    experiment = make_experiment(job, "smollm2", device, seed)
    record = Record(experiment.name, experiment.parameters, experiment.run(), environment(device), UNITS)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from lab.checks.equivalence import PrefillRow, check_prefill, random_prompt
from lab.measure.chunk_cost import TERMS, chunk_cost, fit_cost
from lab.measure.ledger import Step, prefill_steps, step_peak
from lab.measure.memory import PeakMemory
from lab.measure.records import Record, Row
from lab.measure.roofline import ceilings, roofline
from lab.measure.steps import StepRunner
from lab.measure.work import prefill_pieces
from lab.model.attention import select_backend
from lab.model.decoder import Decoder
from lab.model.device import allocator_stats, dtype_name, parse_dtype, reset_peak_memory, supported_dtypes
from lab.model.kv_store import KVStore
from lab.model.weights import load_model

PROMPT_TOKENS = 1024
CHUNK_SIZES = (64, 128, 256, 512)
LENGTHS = (512, 2048)  # two, or the causes of cost can't be told apart
PREFILL_TOKENS = (1, 4, 16, 64, 256, 1024)
DECODE_BATCHES = (1, 4, 16, 64)
REPEATS = 5
BLOCK_SIZE = 16
TOLERANCE = 0.02  # of the ledger on a GPU, where kernels have scratch space of their own; on the CPU it is exact
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
    "predicted_bytes": "bytes",
    "allocator_bytes": "bytes",
    "ops": "ATen operations",
    "kernels": "kernels",
    "flops_per_s": "1/s",
    "bound_ms": "ms",
    "ceiling_flops_per_s": "1/s",
    "ceiling_bytes_per_s": "bytes/s",
    **{f"{term}_share": "of the fitted time" for term in TERMS},
}


@dataclass(frozen=True)
class Experiment:
    """What makes one record; `run` takes its time."""

    name: str
    parameters: Mapping[str, Any]
    run: Callable[[], list[Row]]

    def record(self, environment: Mapping[str, Any]) -> Record:
        rows = self.run()
        return Record(self.name, self.parameters, rows, environment, {k: u for k, u in UNITS.items() if k in rows[0]})


def passed(record: Record) -> bool:
    """Is every verdict of the record good? A record without verdicts has none to fail."""
    return all(row.get("match", True) for row in record.rows)


def jobs(suites: Iterable[str], device: torch.device) -> list[tuple[str, str]]:
    """(suite, dtype): values and bytes in every dtype but float64, times in the one that suits the device."""
    usual = dtype_name(parse_dtype(None, device))
    every = [name for name in supported_dtypes(device) if name != "float64"]
    return [(suite, dtype) for suite in suites for dtype in (every if suite in ("prefill", "memory") else [usual])]


def make_experiment(job: tuple[str, str], model: str, device: torch.device, seed: int) -> Experiment:
    """Load the model and say what will be run."""
    suite, dtype = job
    loaded = load_model(model, dtype=dtype, device=device, seed=seed)
    decoder = loaded.decoder
    selected = select_backend(None, decoder.config, device, decoder.dtype, BLOCK_SIZE)
    parameters = {
        "model": loaded.name,
        "source": loaded.source,
        "dtype": dtype,
        "attention": selected.backend.name,
        "block_size": BLOCK_SIZE,
        "seed": seed,
    }
    own, run = SUITES[suite](decoder, seed)
    return Experiment(f"{suite}-{dtype}", parameters | own, run)


Suite = tuple[dict[str, Any], Callable[[], list[Row]]]


def prefill(decoder: Decoder, seed: int) -> Suite:
    """Chunked against whole: values, memory and time."""

    def run() -> list[Row]:
        prompt = random_prompt(decoder, PROMPT_TOKENS, seed)
        report = check_prefill(decoder, prompt, CHUNK_SIZES, block_size=BLOCK_SIZE, repeats=REPEATS)
        return [prefill_row(row) for row in report.rows]

    return {"prompt_tokens": PROMPT_TOKENS, "repeats": REPEATS}, run


def prefill_row(row: PrefillRow) -> Row:
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


def memory(decoder: Decoder, seed: int) -> Suite:
    """Transient peak against chunk size and length: by the ledger, counted, and on a GPU the allocator's."""

    def run() -> list[Row]:
        usual = select_backend(None, decoder.config, decoder.device, decoder.dtype, BLOCK_SIZE).backend.name
        cells = [(length, size) for length in LENGTHS for size in _sizes(length)]
        names = dict.fromkeys((usual, "sdpa", "math"))
        return [memory_row(decoder, name, length, size) for name in names for length, size in cells]

    return {"lengths": list(LENGTHS), "chunk_sizes": list(CHUNK_SIZES)}, run


def memory_row(decoder: Decoder, attention: str, length: int, size: int) -> Row:
    config, dtype, device = decoder.config, decoder.dtype, decoder.device
    backend = select_backend(attention, config, device, dtype, BLOCK_SIZE).backend
    steps = prefill_steps(Step(config, length, length, dtype, backend, device, BLOCK_SIZE), size)
    predicted = max(step_peak(step).nbytes for step in steps)
    run = StepRunner(decoder, backend, length, block_size=BLOCK_SIZE).prefill(prefill_pieces(length, size))
    run()  # what a GPU's libraries take at their first call and keep is no part of it
    reset_peak_memory(device)
    before = allocator_stats(device)
    with PeakMemory(device=device) as counted:
        run()
    after = allocator_stats(device)
    allowed = 0 if device.type == "cpu" else TOLERANCE * predicted
    return {
        "attention": backend.name,
        "prompt_tokens": length,
        "chunk_size": size,
        "predicted_bytes": predicted,
        "peak_bytes": counted.peak_bytes,
        "allocator_bytes": after.peak_allocated - before.allocated if before and after else None,
        "kv_bytes": KVStore.bytes_per_token(config, dtype) * length,
        "match": abs(counted.peak_bytes - predicted) <= allowed,
    }


def cost(decoder: Decoder, seed: int) -> Suite:
    """What chunks cost in steps, operations and KV read again, in time, and how much of it is whose."""

    def run() -> list[Row]:
        rows = [row for length in LENGTHS for row in chunk_cost(decoder, length, _sizes(length), repeats=REPEATS)]
        fit = fit_cost(rows)
        return [
            {
                "prompt_tokens": row.tokens,
                "chunk_size": row.chunk_size,
                "steps": row.steps,
                "kv_tokens": row.kv_tokens,
                "weight_bytes": row.weight_bytes,
                "flops": row.flops,
                "ops": row.ops,
                "kernels": row.kernels,
                "median_ms": row.timing.median,
                "min_ms": row.timing.min,
                "max_ms": row.timing.max,
            }
            | {f"{term}_share": share for term, share in fit.shares(row).items()}
            for row in rows
        ]

    return {"lengths": list(LENGTHS), "chunk_sizes": list(CHUNK_SIZES), "repeats": REPEATS}, run


def roofline_steps(decoder: Decoder, seed: int) -> Suite:
    """The roofline: steps of prefill and decode, and what the device reaches at best."""

    def run() -> list[Row]:
        limits = ceilings(decoder.device, decoder.dtype)
        rows = roofline(decoder, prefill_tokens=PREFILL_TOKENS, decode_batches=DECODE_BATCHES, repeats=REPEATS)
        return [
            {
                "kind": row.kind,
                "tokens": row.tokens,
                "context": row.context,
                "flops": row.work.flops,
                "bytes": row.work.nbytes,
                "median_ms": row.timing.median,
                "min_ms": row.timing.min,
                "max_ms": row.timing.max,
                "flops_per_s": row.flops_per_s,
                "bound_ms": row.bound_ms(limits),
                "ceiling_flops_per_s": limits.flops_per_s,
                "ceiling_bytes_per_s": limits.bytes_per_s,
            }
            for row in rows
        ]

    return {"prefill_tokens": list(PREFILL_TOKENS), "decode_batches": list(DECODE_BATCHES), "repeats": REPEATS}, run


def _sizes(length: int) -> list[int]:
    return [*(size for size in CHUNK_SIZES if size < length), length]


SUITES: dict[str, Callable[[Decoder, int], Suite]] = {
    "prefill": prefill,
    "memory": memory,
    "cost": cost,
    "roofline": roofline_steps,
}
