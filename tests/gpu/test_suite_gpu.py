"""The recorded suites on a GPU, at a size of seconds."""

import pytest
import torch

from lab.checks import suite
from lab.checks.suite import SUITES, jobs, make_experiment, passed
from lab.measure.chunk_cost import chunk_cost
from lab.measure.environment import environment
from lab.model.weights import load_model


@pytest.mark.parametrize("name", SUITES)
def test_every_suite(device: torch.device, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "LENGTHS", (256, 1024))
    monkeypatch.setattr(suite, "REPEATS", 2)
    for job in jobs([name], device):
        record = make_experiment(job, "tiny", device, 0).record(environment(device))
        assert passed(record), [row for row in record.rows if not row.get("match", True)]
        assert record.rows and record.environment["cuda"]


def test_kernels_are_counted(device: torch.device) -> None:
    """Each step launches about the same number of kernels, so 8 chunks launch about 8 times those of the whole."""
    chunks, whole = chunk_cost(load_model("tiny", device=device).decoder, 512, [64, 512], attention="sdpa", repeats=1)
    assert whole.kernels and chunks.kernels and 7 < chunks.kernels / whole.kernels < 10
    assert whole.kernels > 50
