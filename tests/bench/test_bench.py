"""The benchmark runs, on a tiny model: what it times is the same work, and what it keeps says what was done."""

from pathlib import Path

import pytest
import torch

from bench.__main__ import main
from bench.contest import Contest, Disagreement, run
from lab.measure.records import load


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_a_table(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    assert main([name, "--quick", "--repeats", "2", "--threads", str(threads), "--output", str(tmp_path)]) == 0
    record = load(next(tmp_path.rglob(f"{name}.json")))
    assert [row["dtype"] for row in record.rows] == ["float32"] * 2 + ["bfloat16"] * 2
    for row in record.rows:
        assert row["ratio"] == pytest.approx(row["ours_ms"] / row["peer_ms"], rel=1e-4)
        assert 0 < row["ours_min_ms"] <= row["ours_ms"] <= row["ours_max_ms"]
    assert "trusted" in record.environment["machine"]
    assert len(capsys.readouterr().out.splitlines()) == 1 + 1 + 4 + 1 + 1  # title, names, rows, verdict, path


def test_different_tokens_are_no_contest() -> None:
    contest = Contest({"tokens": 3}, goal=1.0, ours=lambda: [[1, 2]], theirs={"generate": lambda: [[1, 3]]})
    assert run(contest, is_exact=False, repeats=1)["peer"] == "transformers generate"
    with pytest.raises(Disagreement, match="tokens.*generate"):
        run(contest, is_exact=True, repeats=1)
