"""Rows of the recorded suites: what was measured as columns, and the unit of each column.

What must hold of them is in `lab.checks.claims`, which computes it again from the rows alone.
"""

from lab.checks.equivalence import PrefillRow
from lab.checks.gap import GapRow
from lab.measure.chunk_cost import TERMS, ChunkCost, CostFit
from lab.measure.ledger import Step, prefill_steps, step_peak
from lab.measure.memory import PeakMemory
from lab.measure.records import Row
from lab.measure.roofline import Ceilings, RooflineRow
from lab.measure.steps import BLOCK_SIZE, StepRunner, backend_of
from lab.measure.timing import Timing
from lab.measure.work import prefill_pieces
from lab.model.decoder import Decoder
from lab.model.device import allocator_stats, reset_peak_memory
from lab.model.kv_store import KVStore
from lab.sim.step_cost import MeasuredStep, StepCost

UNITS = {
    "median_ms": "ms",
    "min_ms": "ms",
    "max_ms": "ms",
    "peak_bytes": "bytes",
    "kv_bytes": "bytes",
    "kv_delta": "max over positions, by layer",
    "kv_error": "max over positions, by layer",
    "kv_whole_error": "max over positions, by layer",
    "kv_scale": "max over positions, by layer",
    "logits_delta": "max over positions",
    "logits_error": "max over positions",
    "logits_whole_error": "max over positions",
    "logits_scale": "max over positions",
    "match": "verdict",
    "rows_that_differ": "rows",
    "delta": "max over rows",
    "predicted_bytes": "bytes",
    "allocator_bytes": "bytes",
    "ops": "ATen operations",
    "kernels": "kernels",
    "flops_per_s": "1/s",
    "bound_ms": "ms",
    "ceiling_flops_per_s": "1/s",
    "ceiling_bytes_per_s": "bytes/s",
    "fitted_ms": "ms",
    **{f"{term}_share": "of the fitted time" for term in TERMS},
    "refused": "what the cap said",
    "computed_tokens": "tokens",
    "leaked_bytes": "bytes",
    "token": "id",
    "steps_of_the_prompt": "steps",
    "longest_gap_ms": "ms",
    "gap_ratio": "of whole",
    "ttft_ms": "ms",
    "ttft_ratio": "of whole",
    "ms": "ms",
    "error": "of the measured time",
}


def prefill_row(row: PrefillRow) -> Row:
    differences = {
        f"kv_{name}": [getattr(d, name) for d in row.kv] for name in ("delta", "error", "whole_error", "scale")
    } | {f"logits_{name}": value for name, value in vars(row.logits).items()}
    return {
        "chunk_size": row.chunk_size,
        "chunks": row.chunks,
        **_times(row.timing),
        "peak_bytes": row.peak_bytes,
        "kv_bytes": row.kv_bytes,
        **differences,
        "match": row.ok,
    }


def memory_row(decoder: Decoder, attention: str | None, length: int, size: int) -> Row:
    config, dtype, device = decoder.config, decoder.dtype, decoder.device
    backend = backend_of(decoder, attention)
    steps = prefill_steps(Step(config, length, length, dtype, backend, device, BLOCK_SIZE), size)
    run = StepRunner(decoder, backend, length).prefill(prefill_pieces(length, size))
    run()  # what a GPU's libraries take at their first call and keep is no part of it
    reset_peak_memory(device)
    before = allocator_stats(device)
    with PeakMemory(device=device) as counted:
        run()
    after = allocator_stats(device)
    return {
        "attention": backend.name,
        "prompt_tokens": length,
        "chunk_size": size,
        "predicted_bytes": max(step_peak(step).nbytes for step in steps),
        "peak_bytes": counted.peak_bytes,
        "allocator_bytes": after.peak_requested - before.peak_requested if before and after else None,
        "kv_bytes": KVStore.bytes_per_token(config, dtype) * length,
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
        "fitted_ms": fit.milliseconds(row),
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


def gap_row(row: GapRow, whole: GapRow) -> Row:
    return {
        "budget": row.budget,
        "steps_of_the_prompt": row.steps,
        "longest_gap_ms": row.gap,
        "gap_ratio": row.gap / whole.gap,
        "ttft_ms": row.ttft,
        "ttft_ratio": row.ttft / whole.ttft,
    }


def serving_row(part: str, step: MeasuredStep, cost: StepCost) -> Row:
    fitted = cost.of(step.terms)
    return {
        "part": part,
        **{name: value for name, value in step.terms._asdict().items() if name != "steps"},
        "ms": step.seconds * 1e3,
        "fitted_ms": fitted * 1e3,
        "error": fitted / step.seconds - 1,
    }


def _times(timing: Timing) -> dict[str, float]:
    return {"median_ms": timing.median, "min_ms": timing.min, "max_ms": timing.max}
