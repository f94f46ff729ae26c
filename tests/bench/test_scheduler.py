"""Two schedulers are timed on the same steps, or not at all."""

import pytest

from bench.scheduler import Disagreement, Ours, Plan, contest, spend
from lab.core import FinishReason


def test_a_row_for_each_way_of_counting() -> None:
    alone, both = contest(Ours(3), Ours(3), "us again", running=3, steps=4, repeats=3)
    assert (alone["calls"], both["calls"]) == ("schedule", "schedule + update")
    for row in (alone, both):
        assert row["ratio"] == pytest.approx(row["peer_per_s"] / row["ours_per_s"])
        assert row["ours_min_per_s"] <= row["ours_per_s"] <= row["ours_max_per_s"]
        assert row["at_least_per_s"] is None and row["running"] == 3
    assert both["ours_per_s"] < alone["ours_per_s"]


def test_every_request_decodes_once_the_prompts_are_computed() -> None:
    driver = Ours(5)
    first, *others = spend(driver, 6).plans
    assert first == dict.fromkeys("01234", 100)
    assert all(plan == dict.fromkeys("01234", 1) for plan in others)


def test_the_row_with_a_rate_to_reach_says_so() -> None:
    _, row = contest(Ours(256), Ours(256), "us again", running=256, steps=1, repeats=1)
    assert row["at_least_per_s"] == 5000.0


class Forgetful(Ours):
    """It ends a request that the other goes on with."""

    def run_model(self) -> Plan:
        plan = super().run_model()
        self.scheduler._finish(self.scheduler.requests["0"], FinishReason.STOP) if "0" in plan else None
        return plan


def test_another_schedule_is_no_contest() -> None:
    with pytest.raises(Disagreement, match="2 running: .*other"):
        list(contest(Ours(2), Forgetful(2), "other", running=2, steps=2, repeats=1))
