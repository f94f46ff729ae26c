"""The experiments that `python -m lab record` runs and keeps, by suite. Each has one record a dtype.

for job in jobs(["memory", "cost"], device):
    record = make_experiment(job, None, device, seed).record(environment(device))
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from lab.checks.experiments import SUITES
from lab.checks.rows import UNITS
from lab.checks.sizes import LARGE, SLICE, SMALL
from lab.checks.streams import EXPERIMENTS, StreamExperiment, stream_experiment
from lab.measure.records import Record, Row
from lab.measure.steps import BLOCK_SIZE, backend_of
from lab.model.decoder import Decoder
from lab.model.device import DeviceError, dtype_name, parse_dtype, supported_dtypes
from lab.model.tiny import random_weights
from lab.model.weights import LoadedModel, load_model

EVERY_DTYPE = ("prefill", "bits", "memory")  # values and bytes; times are taken in the dtype that suits the device
OF_THE_SLICE = ("memory", "cap", "gap")  # on a GPU, at its sizes, whatever the model: a smaller one shows nothing there
SECONDS = {"prefill": 15, "bits": 20, "memory": 10, "cost": 35, "roofline": 10, "cap": 10, "gap": 25, "serving": 20,
           "streams": 13}  # of one record on a T4: predictions  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """What makes one record; `run` takes its time."""

    name: str
    parameters: Mapping[str, Any]
    run: Callable[[], list[Row]]

    def record(self, environment: Mapping[str, Any]) -> Record:
        rows = self.run()
        return Record(self.name, self.parameters, rows, environment, {k: u for k, u in UNITS.items() if k in rows[0]})


def jobs(suites: Collection[str], device: torch.device) -> list[tuple[str, str]]:
    """(suite, dtype): values and bytes in every dtype but float64, times in the one that suits the device.

    For the suite streams it is (suite, experiment). Raises DeviceError for that one without a GPU.
    """
    usual = dtype_name(parse_dtype(None, device))
    every = [name for name in supported_dtypes(device) if name != "float64"]
    if "streams" in suites and device.type != "cuda":
        raise DeviceError(f"the suite streams needs a GPU; {device} has no streams. Try `python -m lab streams`")
    settings = dict.fromkeys(EVERY_DTYPE, every) | {"streams": list(EXPERIMENTS)}
    return [(suite, setting) for suite in suites for setting in settings.get(suite, [usual])]


def make_experiment(
    job: tuple[str, str], model: str | None, device: torch.device, seed: int
) -> Experiment | StreamExperiment:
    """Load the model and say what will be run. None is SLICE on a GPU and tiny on the CPU: neither is downloaded."""
    suite, setting = job
    if suite == "streams":
        return stream_experiment(setting, device)
    is_slice = device.type == "cuda" and (model is None or suite in OF_THE_SLICE)
    loaded = load_slice(setting, device, seed) if is_slice else load_model(
        model or "tiny", dtype=setting, device=device, seed=seed
    )  # fmt: skip
    decoder = loaded.decoder
    parameters = {
        "model": loaded.name,
        "source": Path(loaded.source).name,
        "dtype": setting,
        "attention": backend_of(decoder).name,
        "block_size": BLOCK_SIZE,
        "seed": seed,
    }
    own, run = SUITES[suite](decoder, LARGE if is_slice else SMALL, seed)
    return Experiment(f"{suite}-{setting}", parameters | own, run)


def load_slice(dtype: str, device: torch.device, seed: int) -> LoadedModel:
    decoder = Decoder(SLICE, slice_weights(seed)).to(parse_dtype(dtype, device), device)
    return LoadedModel(decoder, "slice", f"random weights, seed {seed}")


@lru_cache(maxsize=1)
def slice_weights(seed: int) -> dict[str, torch.Tensor]:
    """Drawn once for all records: that takes seconds."""
    return random_weights(SLICE, seed)
