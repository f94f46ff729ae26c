"""What is measured in each recorded suite: the settings of its record, and a call that measures the rows."""

import gc
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from lab.checks import rows
from lab.checks.calibrate import EngineMachine, fit_runs, run_mix, run_steps
from lab.checks.capped import WIDE, CappedRow, capped_prefill, kernel_capped_prefill
from lab.checks.confirm import LIMITS, ROOMY, random_load
from lab.checks.equivalence import check_prefill, random_prompt
from lab.checks.gap import interleaving_gaps
from lab.checks.invariance import TILE, bit_equality
from lab.checks.sizes import Sizes, whole_too
from lab.measure.cap import MemoryCap, device_cap
from lab.measure.chunk_cost import chunk_cost, fit_cost
from lab.measure.records import Row
from lab.measure.roofline import ceilings, roofline
from lab.measure.steps import backend_of
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.model.tiny import random_weights

Suite = tuple[dict[str, Any], Callable[[], list[Row]]]


def prefill(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """Chunked against whole: values, memory and time."""

    def run() -> list[Row]:
        prompt = random_prompt(decoder, sizes.prompt, seed)
        report = check_prefill(decoder, prompt, sizes.chunk_sizes, repeats=sizes.repeats)
        return [rows.prefill_row(row) for row in report.rows]

    own = {"prompt_tokens": sizes.prompt, "chunk_sizes": sizes.chunk_sizes, "repeats": sizes.repeats}
    return own | {"kv_bytes_per_token": KVStore.bytes_per_token(decoder.config, decoder.dtype)}, run


def bits(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """Are results the same to the bit: again, in chunks, beside others; as it is and in fixed tiles?"""

    def run() -> list[Row]:
        return [vars(row) for row in bit_equality(decoder, sizes.bits_prompt, sizes.bits_chunk_sizes, seed)]

    return {"prompt_tokens": sizes.bits_prompt, "chunk_sizes": sizes.bits_chunk_sizes, "tile": TILE}, run


def memory(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """Transient peak against chunk size and length: by the ledger, counted, and on a GPU the allocator's.

    The backend `math`, whose scores are L squared, at the shorter length only.
    """

    def run() -> list[Row]:
        names = list(dict.fromkeys((backend_of(decoder).name, "sdpa", "math")))
        gc.collect()  # or what earlier runs left would be freed in the middle of a measurement
        return [
            rows.memory_row(decoder, name, length, size)
            for name in names
            for length in (sizes.memory_lengths[:1] if name == "math" else sizes.memory_lengths)
            for size in whole_too(sizes.memory_chunk_sizes, length)
        ]

    return {"lengths": sizes.memory_lengths, "chunk_sizes": sizes.memory_chunk_sizes}, run


def cost(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """What chunks cost in steps, operations and KV read again, in time, and how much of it is whose."""

    def run() -> list[Row]:
        found = [
            row
            for length in sizes.lengths
            for row in chunk_cost(decoder, length, whole_too(sizes.chunk_sizes, length), repeats=sizes.repeats)
        ]
        fit = fit_cost(found)
        return [rows.cost_row(row, fit) for row in found]

    return {"lengths": sizes.lengths, "chunk_sizes": sizes.chunk_sizes, "repeats": sizes.repeats}, run


def roofline_steps(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """Steps of prefill and of decode, and what the device reaches at best."""
    tokens, batches, repeats = sizes.prefill_tokens, sizes.decode_batches, sizes.repeats

    def run() -> list[Row]:
        limits = ceilings(decoder.device, decoder.dtype)
        found = roofline(decoder, prefill_tokens=tokens, decode_batches=batches, repeats=repeats)
        return [rows.roofline_row(row, limits) for row in found]

    return {"prefill_tokens": tokens, "decode_batches": batches, "repeats": repeats}, run


def cap(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """Under a cap the whole prompt is refused and chunks fit: the GPU's allocator refuses, else Linux, else the lab.

    On a model of its own, wide enough for its transient memory to stand out.
    """
    device, length, nbytes = decoder.device, sizes.cap_prompt, sizes.cap_mib * 2**20
    chunk_sizes = (sizes.cap_chunk_size, length)
    enforcer = "CUDA allocator" if device.type == "cuda" else "Linux" if sys.platform == "linux" else "lab"

    def capped(make: Callable[[], AbstractContextManager[object]]) -> list[CappedRow]:
        wide = Decoder(WIDE, random_weights(WIDE, seed)).to(decoder.dtype, device)
        return capped_prefill(wide, random_prompt(wide, length, seed), chunk_sizes, make, attention="sdpa")

    def run() -> list[Row]:
        if enforcer == "Linux":
            return [vars(row) for row in kernel_capped_prefill(length, chunk_sizes, nbytes, seed)]
        if enforcer == "lab":
            return [vars(row) for row in capped(lambda: MemoryCap(nbytes))]
        capped(lambda: device_cap(device, 16 * nbytes))  # what the libraries take once and keep is taken before
        return [vars(row) for row in capped(lambda: device_cap(device, nbytes))]

    own = {"prompt_tokens": length, "chunk_sizes": chunk_sizes, "cap_bytes": nbytes, "enforced_by": enforcer}
    return own | {"model": "wide", "source": f"random weights, seed {seed}", "attention": "sdpa"}, run


def gap(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """Requests that decode while a long prompt comes in, whole and in chunks: their longest gap, and its TTFT."""
    prompt, decodes, repeats = sizes.gap_prompt, sizes.decodes, sizes.serving_repeats
    budgets = [*sizes.gap_budgets, prompt + decodes]

    def run() -> list[Row]:
        found = interleaving_gaps(decoder, prompt, budgets, decodes=decodes, repeats=repeats, seed=seed)
        return [rows.gap_row(row, found[-1]) for row in found]

    return {"prompt_tokens": prompt, "budgets": budgets, "decodes": decodes, "repeats": repeats}, run


def serving(decoder: Decoder, sizes: Sizes, seed: int) -> Suite:
    """The steps of a mix, to which a cost model is fitted, and those of a load that it is held against."""
    machine = EngineMachine(decoder, backend_of(decoder))
    load = random_load(sizes.served)

    def run() -> list[Row]:
        mixes, loads = [], []
        for _ in range(1 + sizes.serving_repeats):
            mixes.append(run_mix(machine))
            loads.append(run_steps(LIMITS, ROOMY, load.requests(), *machine(ROOMY)))
        fitted, held_out = fit_runs(mixes[1:]), fit_runs(loads[1:])
        parts = {"mix": fitted.steps, "load": held_out.steps}
        return [rows.serving_row(part, step, fitted.cost) for part, steps in parts.items() for step in steps]

    return {"requests": sizes.served, "clock": machine.clock, "repeats": sizes.serving_repeats}, run


SUITES: dict[str, Callable[[Decoder, Sizes, int], Suite]] = {
    "prefill": prefill,
    "bits": bits,
    "memory": memory,
    "cost": cost,
    "roofline": roofline_steps,
    "cap": cap,
    "gap": gap,
    "serving": serving,
}
