"""Rows of the recorded suites: what was measured as columns, and the unit of each column."""

from lab.checks.equivalence import PrefillRow
from lab.measure.chunk_cost import TERMS, ChunkCost, CostFit
from lab.measure.ledger import Step, prefill_steps, step_peak
from lab.measure.memory import PeakMemory
from lab.measure.records import Row
from lab.measure.roofline import Ceilings, RooflineRow
from lab.measure.steps import StepRunner
from lab.measure.timing import Timing
from lab.measure.work import prefill_pieces
from lab.model.attention import select_backend
from lab.model.decoder import Decoder
from lab.model.device import allocator_stats, reset_peak_memory
from lab.model.kv_store import KVStore

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


def prefill_row(row: PrefillRow) -> Row:
    return {
        "chunk_size": row.chunk_size,
        "chunks": row.chunks,
        **_times(row.timing),
        "peak_bytes": row.peak_bytes,
        "kv_bytes": row.kv_bytes,
        "kv_delta": max(d.delta for d in row.kv),
        "logits_delta": row.logits.delta,
        "error_ratio": row.error_ratio,
        "match": row.ok,
    }


def memory_row(decoder: Decoder, attention: str, length: int, size: int, block_size: int) -> Row:
    config, dtype, device = decoder.config, decoder.dtype, decoder.device
    backend = select_backend(attention, config, device, dtype, block_size).backend
    steps = prefill_steps(Step(config, length, length, dtype, backend, device, block_size), size)
    predicted = max(step_peak(step).nbytes for step in steps)
    run = StepRunner(decoder, backend, length, block_size=block_size).prefill(prefill_pieces(length, size))
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


def cost_row(row: ChunkCost, fit: CostFit) -> Row:
    return {
        "prompt_tokens": row.tokens,
        "chunk_size": row.chunk_size,
        "steps": row.steps,
        "kv_tokens": row.kv_tokens,
        "weight_bytes": row.weight_bytes,
        "flops": row.flops,
        "ops": row.ops,
        "kernels": row.kernels,
        **_times(row.timing),
        **{f"{term}_share": share for term, share in fit.shares(row).items()},
    }


def roofline_row(row: RooflineRow, limits: Ceilings) -> Row:
    return {
        "kind": row.kind,
        "tokens": row.tokens,
        "context": row.context,
        "flops": row.work.flops,
        "bytes": row.work.nbytes,
        **_times(row.timing),
        "flops_per_s": row.flops_per_s,
        "bound_ms": row.bound_ms(limits),
        "ceiling_flops_per_s": limits.flops_per_s,
        "ceiling_bytes_per_s": limits.bytes_per_s,
    }


def _times(timing: Timing) -> dict[str, float]:
    return {"median_ms": timing.median, "min_ms": timing.min, "max_ms": timing.max}
