"""A real run of vLLM 0.19.0 (Llama-3.1-8B on one RTX 4090, saturated) against the simulator."""

from pathlib import Path

import pytest

from lab.core import CacheConfig, Scheduler, SchedulerConfig
from lab.sim import simulate
from lab.sim.cost_model import LinearCost, Roofline
from lab.sim.devices import DEVICES, LLAMA_3_1_8B, predict
from lab.sim.fit import Measured
from lab.sim.recorded import (
    BadRecording,
    NotedCost,
    Recorded,
    fit_to_recording,
    latencies,
    mean_error,
    read_recording,
)

RUN = Path(__file__).parents[3] / "shared" / "traces" / "vllm-0.19-rtx4090" / "requests.jsonl"
DATA_SHEET = predict(DEVICES["RTX 4090"], LLAMA_3_1_8B)


def retell(recording, cost):
    """The recorded requests under the recorded limits: 2,588 blocks, 256 sequences, 2,048 tokens."""
    scheduler = Scheduler(SchedulerConfig(2048, 256), CacheConfig(2588, 16))
    return simulate([r.request() for r in recording], scheduler, cost)


@pytest.fixture(scope="module")
def recording():
    if not RUN.exists():
        pytest.skip(f"the recorded run is not here: {RUN}")
    return read_recording(RUN)


@pytest.fixture(scope="module")
def noted():
    return NotedCost(DATA_SHEET)


@pytest.fixture(scope="module")
def predicted(recording, noted):
    return retell(recording, noted)


def test_from_the_data_sheet_alone_it_is_within_5_percent(recording, predicted):
    assert mean_error(recording, predicted) < 0.05
    assert sum(len(step.preempted) for step in predicted.steps) > 100


def test_fitted_it_is_within_2_percent(recording, predicted, noted):
    fitted = fit_to_recording(recording, predicted, noted.steps, DATA_SHEET)
    assert min(fitted.step_s, fitted.token_s, fitted.context_s) > 0
    assert mean_error(recording, retell(recording, fitted)) < 0.02


@pytest.mark.parametrize("half", [0, 1])
def test_fitted_on_half_the_requests_it_is_within_2_percent_on_the_other_half(half, recording, predicted, noted):
    fitted = fit_to_recording(recording[half::2], predicted, noted.steps, DATA_SHEET)
    assert mean_error(recording[1 - half :: 2], retell(recording, fitted)) < 0.02


def test_a_wrong_cost_model_is_far_off(recording):
    twice = Roofline(2 * DATA_SHEET.step_s, DATA_SHEET.token_s, DATA_SHEET.context_s)
    assert mean_error(recording, retell(recording, twice)) > 0.2


def test_a_run_of_the_simulator_itself_is_fitted_exactly():
    """Recorded on a made-up device, retold with the times of another: the fit finds the first one's times."""
    shapes = [(100 + 60 * i, 20 + 7 * (i % 5), 0.03 * i) for i in range(30)]
    real = Roofline(0.010, 50e-6, 0.2e-6)

    def as_recorded(trace):
        return [
            Recorded(str(i), p, m, arrival, times[0], times[-1])
            for i, (p, m, arrival) in enumerate(shapes)
            for times in [trace.requests[str(i)].token_times]
        ]

    blank = [Recorded(str(i), p, m, arrival, 0, 0) for i, (p, m, arrival) in enumerate(shapes)]
    noted = NotedCost(real)
    trace = retell(blank, noted)
    recording = as_recorded(trace)
    assert mean_error(recording, trace) == pytest.approx(0, abs=1e-9)
    prior = Roofline(0.009, 55e-6, 0.22e-6)
    fitted = fit_to_recording(recording, trace, noted.steps, prior)
    assert fitted.step_s == pytest.approx(real.step_s, rel=0.05)
    assert mean_error(recording, retell(blank, fitted)) < 0.02
    assert latencies(recording)["ttft"].n == 30


def test_a_bad_recording_is_named(tmp_path):
    path = tmp_path / "requests.jsonl"
    for text in ("", "{", '{"queued_ts": 1}', '{"queued_ts": "x"}', "[1]"):
        path.write_text(text)
        with pytest.raises(BadRecording, match="requests.jsonl is no recording"):
            read_recording(path)


def test_steps_are_noted_with_what_was_in_them():
    noted = NotedCost(LinearCost(10, 1))
    retell([Recorded("a", 3000, 2, 0.0, 0, 0)], noted)
    assert noted.steps == [
        Measured(2.058, 1, 2048, 2048),
        Measured(pytest.approx(0.962), 1, 952, 3000),
        Measured(0.011, 1, 1, 3001),
    ]
