"""The suite of chapter 3 on a stand-in for the GPU: every experiment runs and makes a record; a verdict can fail."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lab.checks import stream_costs, stream_overlap, streams
from lab.checks.streams import EXPERIMENTS, missing_waits, sanitizer, stream_experiment, verdict_row, verdicts
from lab.checks.suite import jobs, make_experiment
from lab.cli import main
from lab.measure.records import dumps
from lab.streams.programs import find
from lab.streams.trace import Work
from lab.streams.verdict import examine
from lab.streams_torch import backends, cuda
from tests.streams_torch.cpu_cuda import cpu_cuda

GPU = torch.device("cuda", 0)
COPY = Work("Memcpy DtoD (Device -> Device)", 7, 0.0, 5.0, 4096)
ENVIRONMENT = {"device": "a stand-in"}


@pytest.fixture
def device(monkeypatch):
    @contextmanager
    def profiled(found):
        yield
        found.append(COPY)

    class Done:
        returncode, stderr = 1, "torch.cuda._sanitizer: CSAN detected a possible data race"

    monkeypatch.setattr(stream_costs, "SIZES", (1024, 4096))
    monkeypatch.setattr(stream_costs, "HOST_COPY_BYTES", 4096)
    monkeypatch.setattr(stream_overlap, "MATRIX_SIZES", (4, 8))
    monkeypatch.setattr(streams, "REPEATS", 2)
    monkeypatch.setattr(backends, "examine_by_name", lambda program, variant: None)
    monkeypatch.setattr(streams.subprocess, "run", lambda *args, **kwargs: Done())
    monkeypatch.setattr(streams, "run_on_cuda", lambda p, v: (examine(v.run, v.want, cuda.CudaRuntime()), None))
    for module in (cuda, stream_overlap):
        monkeypatch.setattr(module, "profiled", profiled)
    with cpu_cuda():
        yield
    for cached in (cuda.cycles_per_us, cuda.warm_up, stream_costs.opener):
        cached.cache_clear()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_makes_a_record(device, name):
    record = stream_experiment(name, GPU).record(ENVIRONMENT)
    assert record.experiment == f"streams-{name}" and record.rows and record.units
    assert dumps(record)
    settings = [tuple(record.settings(row).items()) for row in record.rows]
    assert len(set(settings)) == len(settings)  # or two records couldn't be compared


def test_a_broken_program_that_gives_the_right_answer_is_a_failure(device):
    rows = {(row["program"], row["variant"]): row for row in missing_waits(GPU)}
    assert not rows["wait_before_record", "broken"]["match"] or not rows["raw", "broken"]["match"]
    assert rows["raw", "event"]["match"] and rows["raw", "event"]["right_runs"] == 2


def test_a_copy_that_nobody_asked_for_is_a_failure(device, monkeypatch):
    verdict = examine(find("raw").variant("event").run, 2)
    monkeypatch.setattr(streams, "run_on_cuda", lambda p, v: (verdict, None))
    assert verdict_row("raw", find("raw").variant("event"))["match"]
    copied = replace(verdict, measures=replace(verdict.measures, device_copies=1))
    monkeypatch.setattr(streams, "run_on_cuda", lambda p, v: (copied, None))
    assert not verdict_row("raw", find("raw").variant("event"))["match"]


@pytest.mark.parametrize(
    ("returncode", "stderr", "matches"),
    [
        (1, "CSAN detected a possible data race", [True, False, False]),
        (0, "", [False, True, True]),
        (1, "CUDA error", [False, False, False]),  # neither a report nor the lack of one
    ],
)
def test_the_verdict_on_the_sanitizer(device, monkeypatch, returncode, stderr, matches):
    """On a race, its mended twin and memory used again, if it says the same of all three."""
    done = SimpleNamespace(returncode=returncode, stderr=stderr)
    monkeypatch.setattr(streams.subprocess, "run", lambda *args, **kwargs: done)
    assert [row["match"] for row in sanitizer(GPU)] == matches


def test_every_program_of_the_chapter_is_in_some_experiment():
    assert {"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "e10", "e11"} == {
        name.split("-")[0] for name in EXPERIMENTS
    }
    with pytest.raises(Exception, match="no program 'nope'"):
        verdicts("nope")(GPU)


def test_the_suite_is_registered(monkeypatch):
    monkeypatch.setattr("lab.checks.suite.parse_dtype", lambda name, device: torch.float16)
    monkeypatch.setattr("lab.checks.suite.supported_dtypes", lambda device: ("float16",))
    found = jobs(["streams"], GPU)
    assert [make_experiment(job, "tiny", GPU, 0).name for job in found] == [f"streams-{name}" for name in EXPERIMENTS]


def test_without_a_gpu_it_says_so(capsys):
    assert main(["record", "--suite", "streams", "--device", "cpu"]) == 2
    assert "the suite streams needs a GPU; cpu has no streams" in capsys.readouterr().err
