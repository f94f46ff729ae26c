"""The recorded suites on a GPU, at the sizes of the GPU's records or smaller: together about two minutes."""

from dataclasses import replace

import pytest
import torch

from lab.checks import suite
from lab.checks.claims import problems
from lab.checks.sizes import LARGE
from lab.checks.suite import SUITES, jobs, make_experiment
from lab.measure.chunk_cost import chunk_cost
from lab.measure.environment import environment
from lab.model.weights import load_model

QUICK = replace(
    LARGE, prompt=256, chunk_sizes=(64, 128), lengths=(512, 2048), memory_lengths=(2048, 4096),
    memory_chunk_sizes=(1024, 2048), bits_prompt=96, bits_chunk_sizes=(17, 64), served=8, repeats=2, serving_repeats=1,
)  # fmt: skip


@pytest.mark.parametrize("name", SUITES)
def test_every_suite(device: torch.device, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "LARGE", QUICK)
    for job in jobs([name], device):
        record = make_experiment(job, None, device, 0).record(environment(device))
        assert problems(record) == []
        assert record.rows and record.environment["cuda"]


def test_kernels_are_counted(device: torch.device) -> None:
    """Each step launches about the same number of kernels, so 8 chunks launch about 8 times those of the whole."""
    chunks, whole = chunk_cost(load_model("tiny", device=device).decoder, 512, [64, 512], attention="sdpa", repeats=1)
    assert whole.kernels and chunks.kernels and 7 < chunks.kernels / whole.kernels < 10
    assert whole.kernels > 50
