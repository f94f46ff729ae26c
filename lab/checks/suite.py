"""The experiments that `python -m lab record` runs and keeps, by suite. Each has one record a dtype.

for job in jobs(["memory", "cost"], device):
    record = make_experiment(job, "smollm2", device, seed).record(environment(device))
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from lab.checks.equivalence import check_prefill, random_prompt
from lab.checks.rows import UNITS, cost_row, memory_row, prefill_row, roofline_row
from lab.checks.streams import EXPERIMENTS, StreamExperiment, stream_experiment
from lab.measure.chunk_cost import chunk_cost, fit_cost
from lab.measure.records import Record, Row
from lab.measure.roofline import ceilings, roofline
from lab.model.attention import select_backend
from lab.model.decoder import Decoder
from lab.model.device import DeviceError, dtype_name, parse_dtype, supported_dtypes
from lab.model.weights import load_model

PROMPT_TOKENS = 1024
CHUNK_SIZES = (64, 128, 256, 512)
LENGTHS = (512, 2048)  # two, or the causes of cost can't be told apart
PREFILL_TOKENS = (1, 4, 16, 64, 256, 1024)
DECODE_BATCHES = (1, 4, 16, 64)
REPEATS = 5
BLOCK_SIZE = 16


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


def jobs(suites: Collection[str], device: torch.device) -> list[tuple[str, str]]:
    """(suite, dtype): values and bytes in every dtype but float64, times in the one that suits the device.

    For the suite streams it is (suite, experiment). Raises DeviceError for that one without a GPU.
    """
    usual = dtype_name(parse_dtype(None, device))
    every = [name for name in supported_dtypes(device) if name != "float64"]
    if "streams" in suites and device.type != "cuda":
        raise DeviceError(f"the suite streams needs a GPU; {device} has no streams. Try `python -m lab streams`")
    settings = {"prefill": every, "memory": every, "streams": list(EXPERIMENTS)}
    return [(suite, setting) for suite in suites for setting in settings.get(suite, [usual])]


def make_experiment(job: tuple[str, str], model: str, device: torch.device, seed: int) -> Experiment | StreamExperiment:
    """Load the model and say what will be run."""
    suite, dtype = job
    if suite == "streams":
        return stream_experiment(dtype, device)
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

    return {"prompt_tokens": PROMPT_TOKENS, "chunk_sizes": list(CHUNK_SIZES), "repeats": REPEATS}, run


def memory(decoder: Decoder, seed: int) -> Suite:
    """Transient peak against chunk size and length: by the ledger, counted, and on a GPU the allocator's."""

    def run() -> list[Row]:
        usual = select_backend(None, decoder.config, decoder.device, decoder.dtype, BLOCK_SIZE).backend.name
        cells = [(length, size) for length in LENGTHS for size in _sizes(length)]
        names = dict.fromkeys((usual, "sdpa", "math"))
        return [memory_row(decoder, name, length, size, BLOCK_SIZE) for name in names for length, size in cells]

    return {"lengths": list(LENGTHS), "chunk_sizes": list(CHUNK_SIZES)}, run


def cost(decoder: Decoder, seed: int) -> Suite:
    """What chunks cost in steps, operations and KV read again, in time, and how much of it is whose."""

    def run() -> list[Row]:
        rows = [row for length in LENGTHS for row in chunk_cost(decoder, length, _sizes(length), repeats=REPEATS)]
        fit = fit_cost(rows)
        return [cost_row(row, fit) for row in rows]

    return {"lengths": list(LENGTHS), "chunk_sizes": list(CHUNK_SIZES), "repeats": REPEATS}, run


def roofline_steps(decoder: Decoder, seed: int) -> Suite:
    """Steps of prefill and of decode, and what the device reaches at best."""

    def run() -> list[Row]:
        limits = ceilings(decoder.device, decoder.dtype)
        rows = roofline(decoder, prefill_tokens=PREFILL_TOKENS, decode_batches=DECODE_BATCHES, repeats=REPEATS)
        return [roofline_row(row, limits) for row in rows]

    return {"prefill_tokens": list(PREFILL_TOKENS), "decode_batches": list(DECODE_BATCHES), "repeats": REPEATS}, run


def _sizes(length: int) -> list[int]:
    return [*(size for size in CHUNK_SIZES if size < length), length]


SUITES: dict[str, Callable[[Decoder, int], Suite]] = {
    "prefill": prefill,
    "memory": memory,
    "cost": cost,
    "roofline": roofline_steps,
}
