"""Calibration on a machine of virtual time, whose cost is known; and the engine, of whose times nothing is claimed."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.checks import calibrate as mix
from lab.checks.calibrate import DeviceClock, ProcessorClock, fit_runs, run_mix
from lab.checks.confirm import LEAST, METRICS, POINTS, Effort, calibrate, random_load, served_per_s
from lab.cli import main
from lab.core import ConfigError
from lab.measure.records import load
from lab.sim import SimulatedExecutor, VirtualClock
from lab.sim.stability import Verdict
from lab.sim.step_cost import MeasuredStep, StepCost, Terms, fit_steps, load_step_cost

COST = StepCost(step_s=1e-3, token_s=2e-5, request_s=3e-4, context_s=3e-7, pair_s=4e-8)


def virtual(cost):
    """A machine whose steps take exactly what `cost` says."""

    def machine(cache):
        clock = VirtualClock()
        return SimulatedExecutor(cost, clock), clock

    return machine


def test_the_mix_recovers_a_known_cost():
    calibration = fit_runs([run_mix(virtual(COST))] * 2)
    assert asdict(calibration.cost) == pytest.approx(asdict(COST), rel=1e-6)
    assert calibration.error(99) < 1e-9 and abs(calibration.total_error) < 1e-9


def test_the_mix_has_chunks_decodes_and_both():
    steps = [step.terms for step in run_mix(virtual(COST))]
    assert max(t.tokens for t in steps) == 512 and min(t.tokens for t in steps) == 1
    assert max(t.requests for t in steps) >= 8
    assert any(1 < t.requests < t.tokens for t in steps) and any(1 < t.requests == t.tokens for t in steps)


def test_a_term_that_costs_nothing_is_fitted_as_nothing():
    """Noise would have it below 0, and a long step then take less than no time."""
    cost = replace(COST, context_s=0.0)
    steps = [
        MeasuredStep(step.terms, step.seconds * (1.1 if i % 3 else 0.9) - 1e-8 * step.terms.context)
        for i, step in enumerate(run_mix(virtual(cost)))
    ]
    fitted = fit_steps(steps)
    assert min(asdict(fitted).values()) >= 0 and fitted.context_s == 0.0
    assert fitted.step_s == pytest.approx(cost.step_s, rel=0.2)


def test_steps_that_are_all_alike_are_refused():
    with pytest.raises(ConfigError, match="too alike"):
        fit_steps([MeasuredStep(Terms(1, 1, 1, 10, 10), 0.1)] * 20)


STEPS = run_mix(virtual(COST))[::10]


@settings(max_examples=20)
@given(st.lists(st.floats(0.5, 2.0), min_size=3, max_size=3))
def test_a_steps_time_is_the_mean_of_its_repeats(factors):
    runs = [[MeasuredStep(step.terms, step.seconds * f) for step in STEPS] for f in factors]
    for fitted, step in zip(fit_runs(runs).steps, STEPS, strict=True):
        assert fitted.terms == step.terms and fitted.seconds == pytest.approx(step.seconds * sum(factors) / 3)


def test_on_virtual_time_the_simulator_is_the_machine():
    _, points, _ = calibrate(virtual(COST), num_requests=60, repeats=1)
    assert [(point.num_blocks, point.rho) for point in points] == [(cache.num_blocks, rho) for cache, rho in POINTS]
    for point in points:
        assert all(abs(point.error(metric)) < 1e-6 for metric in METRICS)
        assert point.verdicts == (point.predicted_verdict,)
    assert points[0].verdicts == (Verdict.STABLE,)
    assert points[2].verdicts == (Verdict.QUEUE_BOUND,)
    assert points[3].verdicts == (Verdict.THRASH,)


def test_a_cost_that_is_too_low_shows(monkeypatch):
    def flatter(runs):
        return fit_runs([[MeasuredStep(step.terms, 0.8 * step.seconds) for step in run] for run in runs])

    monkeypatch.setattr("lab.checks.confirm.fit_runs", flatter)
    _, points, _ = calibrate(virtual(COST), num_requests=60, repeats=1)
    assert points[0].error("itl_p50_ms") < -0.15


def test_rho_is_the_load_over_what_is_served():
    load = random_load(60)
    assert served_per_s(load, COST) == pytest.approx(
        2 * served_per_s(load, StepCost(*(2 * s for s in vars(COST).values())))
    )


@pytest.mark.parametrize("options", [{"num_requests": 1}, {"repeats": 0}])
def test_too_little_to_measure_is_refused(options):
    with pytest.raises(ConfigError, match="it must be at least"):
        calibrate(virtual(COST), **options)


@pytest.mark.parametrize(
    "share, effort",
    [
        (2.0, (12, 100, 3)),
        (1.0, (12, 100, 3)),
        (0.7, (12, 100, 2)),
        (0.2, (7, 60, 1)),
        (1e-9, (3, 10, 1)),
        (-1, (3, 10, 1)),
    ],
)
def test_what_takes_too_long_is_measured_less_often_and_then_on_less(share, effort):
    assert Effort(12, 100, 3).within(share) == Effort(*effort)


def test_nothing_is_cut_to_more_than_was_asked_for():
    assert Effort(12, 4, 1).within(0.1) == Effort(3, 4, 1)


def test_a_slow_machine_is_measured_as_little_as_can_be():
    """A second a step would take an hour."""
    slow = replace(COST, step_s=1.0)
    calibration, points, effort = calibrate(virtual(slow), seconds=60)
    assert effort == LEAST and len(calibration.steps) < len(run_mix(virtual(slow)))
    assert all(abs(point.error(metric)) < 1e-6 for point in points for metric in METRICS)


def test_the_processors_clock_jumps_and_never_goes_back():
    clock = ProcessorClock()
    clock.wait_until(100.0)
    assert clock.now() >= 100.0
    clock.wait_until(50.0)
    assert 100.0 <= clock.now() < 101.0  # nobody slept


def test_a_step_is_over_when_the_device_is_through(monkeypatch):
    asked = []
    monkeypatch.setattr(mix, "synchronize", asked.append)
    DeviceClock(torch.device("cpu")).now()
    assert asked == [torch.device("cpu")]


def test_the_engines_fit_is_kept_and_read_back(capsys, tmp_path, monkeypatch):
    """A mix of few steps on the tiny model: that all is there, and none of it is a time that this test asserts."""
    monkeypatch.setattr(mix, "REQUESTS", 3)
    options = ["--device", "cpu", "--threads", "1", "--requests", "8", "--repeats", "1", "--out", str(tmp_path)]
    assert main(["calibrate", "--model", "tiny", *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    record = load(Path(document["path"]))
    assert record.parameters["clock"] == "process" and record.parameters["fitted_steps"] > 20
    assert record.environment["torch"] and len(record.rows) == len(POINTS)
    cost = load_step_cost(Path(document["path"]))
    assert asdict(cost) == pytest.approx(record.parameters["cost"]) and min(asdict(cost).values()) >= 0


ZERO = dict.fromkeys(("step_s", "token_s", "request_s", "context_s", "pair_s"), 0)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", '{"parameters": {"cost": {"step_s": 1}}}', '{"parameters": {"cost": 3}}', "[" * 100_000),
        *(json.dumps({"parameters": {"cost": ZERO | {"step_s": seconds}}}) for seconds in (-1, 1e308, math.nan)),
    ],
)
def test_a_file_that_is_no_cost_model_is_one_line(tmp_path, text):
    path = tmp_path / "cost.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is no cost model") as error:
        load_step_cost(path)
    assert "\n" not in str(error.value)


def test_a_cost_model_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="is no cost model"):
        load_step_cost(tmp_path / "none.json")
