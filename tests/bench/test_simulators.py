"""What our side of the simulators' table counts; the peers are in an environment that the tests do without."""

import pytest

from bench.simulators import COST, Simulated, Steps, ours, side, sides
from lab.sim.load import Load


def test_our_run_is_counted() -> None:
    run = ours(Load(((0.0, 600, 3), (0.0, 100, 2))))  # 512 a step: 512, then 88 and 100, then 1 and 1, then 1
    assert (run.steps, run.batch) == (4, (1 + 2 + 2 + 1) / 4)
    assert run.seconds > 0


def test_a_step_takes_what_the_cost_says() -> None:
    steps = Steps()
    assert steps.take(100, 3) == pytest.approx((COST.step_ms + 100 * COST.token_ms) / 1e3)
    assert steps.simulated(2.0) == Simulated(2.0, 1, 3.0)


def test_a_row_beside_a_peer_and_one_alone() -> None:
    mine, theirs = [Simulated(0.5, 10, 4.0)], [Simulated(2.0, 11, 4.5)]
    beside = sides(100, mine, "other", theirs)
    assert (beside["ours_per_s"], beside["peer_per_s"]) == (200.0, 50.0)
    assert (beside["ratio"], beside["goal"], beside["at_least_per_s"]) == (0.25, 1.0, None)
    alone = sides(100, mine, None, None)
    assert alone.keys() == beside.keys() and alone["ratio"] is None and alone["peer_batch"] is None
    assert alone["at_least_per_s"] == pytest.approx(19366 / 6)


def test_columns_of_a_side() -> None:
    assert side("peer", 10, [Simulated(1.0, 7, 2.0)])["peer_steps"] == 7
