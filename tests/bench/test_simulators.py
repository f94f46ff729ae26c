"""What our side of the simulators' table counts; the peers are in an environment that the tests do without."""

from pathlib import Path

import pytest

from bench.__main__ import parse
from bench.simulators import COST, Simulated, Steps, asked, ours, rows, side, sides
from bench.table import Run, Skipped
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


def test_the_load_is_the_trace_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.turns.SETTLE_S", 0)
    trace = tmp_path / "three.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "2023-11-16 18:15:46,600,3\n" * 3)
    *_, last = rows(1, True, str(parse(["simulators", "--trace", str(trace)]).trace))
    assert (last["load"], last["requests"]) == ("three.csv", 3)


def test_without_a_trace_it_is_said_where_to_get_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        parse(["simulators", "--trace", "nowhere.csv"])
    assert "nowhere.csv is no file; AzureLLMInferenceTrace_conv.csv" in capsys.readouterr().err

    def absent(environment: str) -> Path:
        raise Skipped(environment)

    monkeypatch.setattr("bench.simulators.python_of", absent)
    run = Run(1, 1, (), True)
    with pytest.raises(Skipped):
        asked(run)
    assert "made up by its statistics; give --trace AzureLLMInferenceTrace_conv.csv" in run.left_out[0]
