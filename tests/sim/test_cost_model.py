"""Step times by hand, from data sheets, and fitted."""

import pytest

from lab.core import CacheConfig, ConfigError, Request, SamplingParams, Scheduler, SchedulerConfig, StepPlan
from lab.policies.swap import BlockCopy, SwapPlan
from lab.sim.cost_model import LinearCost, Roofline, SwapCost, context_tokens
from lab.sim.devices import DEVICES, LLAMA_3_1_8B, predict
from lab.sim.fit import Measured, fit, solve


def test_what_a_step_costs_by_hand():
    scheduler = Scheduler(SchedulerConfig(100, 8), CacheConfig(100))
    for name, prompt in (("a", 60), ("b", 150)):
        scheduler.submit(Request(name, range(prompt), SamplingParams(9)))
    plan = scheduler.schedule()
    assert plan.num_tokens == {"a": 60, "b": 40} and context_tokens(plan, scheduler) == 100
    scheduler.update(plan, {"a": 0})
    plan = scheduler.schedule()
    assert plan.num_tokens == {"a": 1, "b": 99} and context_tokens(plan, scheduler) == 61 + 139
    assert Roofline(1.0, 0.1, 0.001).seconds(plan, scheduler) == pytest.approx(1 + 10 + 0.2)
    assert LinearCost().seconds(plan, scheduler) == pytest.approx(0.007)
    assert LinearCost().seconds(StepPlan({}), scheduler) == pytest.approx(0.005)


def test_a_step_waits_for_its_copies():
    cost = SwapCost(LinearCost(), block_bytes=1000, bytes_per_s=1e6)
    scheduler = Scheduler(SchedulerConfig(100, 8), CacheConfig(100))
    out, back = BlockCopy("a", (4, 5, 6), (0, 1, 2)), BlockCopy("b", (7,), (3,))
    assert cost.seconds(SwapPlan({}, swapped_out=(out,)), scheduler) == pytest.approx(0.005 + 0.003)
    assert cost.seconds(SwapPlan({}, swapped_out=(out,), swapped_in=(back,)), scheduler) == pytest.approx(0.009)
    assert cost.seconds(StepPlan({}), scheduler) == pytest.approx(0.005)


def test_an_8b_model_on_an_rtx_4090_as_its_data_sheet_has_it():
    cost = predict(DEVICES["RTX 4090"], LLAMA_3_1_8B)
    assert cost.step_s == pytest.approx(15.9e-3, rel=0.01)
    assert cost.token_s == pytest.approx(97e-6, rel=0.01)
    assert cost.context_s == pytest.approx(0.13e-6, rel=0.01)


def test_every_preset_names_its_source_and_is_a_plausible_device():
    assert set(DEVICES) == {"T4", "L4", "A100", "H100", "H200", "RTX 4090"}
    for device in DEVICES.values():
        assert "NVIDIA" in device.source
        assert 100 < device.flops / device.bytes_per_s < 500  # operations a byte: where decode turns compute-bound


def test_the_fit_finds_the_times_that_made_the_measurements():
    made = Roofline(0.012, 60e-6, 0.1e-6)
    steps = [(tokens, context) for tokens in (1, 16, 200, 2048) for context in (100, 5_000, 80_000)]
    measured = [Measured(made.step_s + made.token_s * t + made.context_s * c, 1, t, c) for t, c in steps]
    fitted = fit(measured)
    assert (fitted.step_s, fitted.token_s, fitted.context_s) == pytest.approx((0.012, 60e-6, 0.1e-6))


def test_a_fit_by_hand_where_no_line_goes_through_all_points():
    """Two steps alike took 1 and 3 s: the x with the least (x - 1)² + (x/3 - 1)² is (1 + 1/3) / (1 + 1/9)."""
    unit = [Measured(1.0, 0, 1, 0), Measured(1.0, 0, 0, 1)]
    fitted = fit([Measured(1.0, 1, 0, 0), Measured(3.0, 1, 0, 0), *unit])
    assert fitted.step_s == pytest.approx((1 / 1 + 1 / 3) / (1 / 1 + 1 / 9)) and fitted.token_s == pytest.approx(1.0)


def test_steps_that_are_all_alike_cannot_be_fitted():
    with pytest.raises(ConfigError, match="too alike"):
        fit([Measured(0.01, 1, 64, 6400)] * 5)
    with pytest.raises(ConfigError, match="too alike"):
        fit([])


def test_the_solver_exchanges_rows_where_it_must():
    assert solve([[0, 1, 0], [1, 0, 0], [0, 0, 2]], [5, 7, 8]) == [7, 5, 4]
