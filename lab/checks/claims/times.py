"""Claims about times: what chunks cost, the roofline, the gap of those who wait, and a cost model's error."""

from lab.checks.claims.common import Problems, close, on_gpu, rises, settings
from lab.checks.sizes import whole_too
from lab.core.metrics import percentile
from lab.measure.chunk_cost import ChunkCost, fit_cost
from lab.measure.records import Record, Row
from lab.measure.timing import Timing
from lab.sim.step_cost import MeasuredStep, Terms, fit_steps

PARTS = ("mix", "load")  # of a serving record: what the model is fitted to, and what it has not seen
HELD_OUT_FACTOR, HELD_OUT_FLOOR = 2.0, 0.1  # median error on the load: at most so many times the mix's, and so much


def cost(record: Record) -> Problems:
    """Steps, KV read and weights read in closed form; more steps, more launches; the fit comes out as it is stated."""
    wanted = [
        (length, size)
        for length in record.parameters["lengths"]
        for size in whole_too(record.parameters["chunk_sizes"], length)
    ]
    yield from settings(record, wanted, "prompt_tokens", "chunk_size")
    for row in record.rows:
        length, size = row["prompt_tokens"], row["chunk_size"]
        where, ends = f"{length} tokens in chunks of {size}", [*range(size, length, size), length]
        if (row["steps"], row["kv_tokens"]) != (len(ends), sum(ends)):
            yield f"{where}: {row['steps']} steps read {row['kv_tokens']} KV tokens, not {len(ends)} and {sum(ends)}"
    counted = {row["kernels"] is not None for row in record.rows}
    if counted != {on_gpu(record)}:
        yield "kernels are counted on a GPU, and on a GPU alone"
    for length in record.parameters["lengths"]:
        rows = [row for row in record.rows if row["prompt_tokens"] == length][::-1]
        if len({row["flops"] for row in rows}) > 1:
            yield f"{length} tokens: flops differ between chunk sizes, and chunks multiply the same"
        for column in ("ops", "weight_bytes", *(["kernels"] if counted == {True} else [])):
            yield from rises(rows, column, f"{length} tokens, in ever more steps")
    yield from _cost_fit(record)


def _cost_fit(record: Record) -> Problems:
    found = [
        ChunkCost(row["chunk_size"], row["steps"], length := row["prompt_tokens"], length * (length + 1) // 2,
                  row["kv_tokens"], 0, 0, 0, None, Timing((row["median_ms"],)))
        for row in record.rows
    ]  # fmt: skip
    fit = fit_cost(found)
    for row, cost in zip(record.rows, found, strict=True):
        where = f"{cost.tokens} tokens in chunks of {cost.chunk_size}"
        if not close(fit.milliseconds(cost), row["fitted_ms"], 1e-3):
            yield f"{where}: fitted_ms is {row['fitted_ms']}, the fit gives {fit.milliseconds(cost):.6g}"
        for term, share in fit.shares(cost).items():
            if abs(share - row[f"{term}_share"]) > 5e-3:
                yield f"{where}: {term}_share is {row[f'{term}_share']}, the fit gives {share:.6g}"


def roofline(record: Record) -> Problems:
    """Rates and bounds follow from the times and the ceilings; a large step computes faster than one token."""
    steps = [("prefill", tokens) for tokens in record.parameters["prefill_tokens"]]
    steps += [("decode", batch) for batch in record.parameters["decode_batches"]]
    yield from settings(record, steps, "kind", "tokens")
    for row in record.rows:
        where = f"{row['kind']} of {row['tokens']}"
        rate = row["flops"] / row["median_ms"] * 1e3
        if not close(rate, row["flops_per_s"]):
            yield f"{where}: flops_per_s is {row['flops_per_s']}, flops over time give {rate:.6g}"
        bound = 1e3 * max(row["flops"] / row["ceiling_flops_per_s"], row["bytes"] / row["ceiling_bytes_per_s"])
        if not close(bound, row["bound_ms"]):
            yield f"{where}: bound_ms is {row['bound_ms']}, the ceilings give {bound:.6g}"
    if len({(row["ceiling_flops_per_s"], row["ceiling_bytes_per_s"]) for row in record.rows}) > 1:
        yield "the ceilings differ between rows, and the device is one"
    for kind in ("prefill", "decode"):
        rates = [row["flops_per_s"] for row in record.rows if row["kind"] == kind]
        if not rates[0] < rates[-1]:
            yield f"{kind}: the largest step computes at {rates[-1]}/s, no faster than the smallest at {rates[0]}/s"


def gap(record: Record) -> Problems:
    """Steps in closed form; ratios follow from the times; a smaller budget has a shorter gap than the whole prompt."""
    budgets, decodes = record.parameters["budgets"], record.parameters["decodes"]
    yield from settings(record, [(budget,) for budget in budgets], "budget")
    whole = record.rows[-1]
    for row in record.rows:
        where = f"budget {row['budget']}"
        steps = -(-record.parameters["prompt_tokens"] // (row["budget"] - decodes))
        if row["steps_of_the_prompt"] != steps:
            yield f"{where}: the prompt took {row['steps_of_the_prompt']} steps, not {steps}"
        for column, ratio in (("longest_gap_ms", "gap_ratio"), ("ttft_ms", "ttft_ratio")):
            value = row[column] / whole[column]
            if not close(row[ratio], value):
                yield f"{where}: {ratio} is {row[ratio]}, the times give {value:.6g}"
        if row is not whole and not row["longest_gap_ms"] < whole["longest_gap_ms"]:
            yield f"{where}: the longest gap is {row['longest_gap_ms']} ms, no shorter than whole"


def serving(record: Record) -> Problems:
    """The fit comes out of the mix as stated; on the load that it has not seen it errs about as little."""
    for row in record.rows:
        if row["part"] not in PARTS:
            yield f"a step is of the part {row['part']!r}, which is none of {', '.join(PARTS)}"
    mix = [row for row in record.rows if row["part"] == "mix"]
    fit = fit_steps([MeasuredStep(_terms(row), row["ms"] / 1e3) for row in mix])
    for number, row in enumerate(record.rows):
        fitted = fit.of(_terms(row)) * 1e3
        if not close(fitted, row["fitted_ms"], 1e-3):
            yield f"step {number}: fitted_ms is {row['fitted_ms']}, the fit gives {fitted:.6g}"
        error = row["fitted_ms"] / row["ms"] - 1
        if abs(error - row["error"]) > 1e-4:
            yield f"step {number}: error is {row['error']}, fitted over measured gives {error:.6g}"
    seen, unseen = (median_error(record, part) for part in PARTS)
    if unseen > HELD_OUT_FACTOR * seen + HELD_OUT_FLOOR:
        yield f"the median error of a step is {unseen:.1%} on the load and {seen:.1%} on the mix it was fitted to"


def median_error(record: Record, part: str) -> float:
    """Of the steps of a part of a serving record, whatever the sign."""
    return percentile([abs(row["error"]) for row in record.rows if row["part"] == part], 50)


def _terms(row: Row) -> Terms:
    return Terms(1, row["tokens"], row["requests"], row["context"], row["pairs"])
