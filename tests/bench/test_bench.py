"""The benchmark runs, on a tiny model: what it times is the same work, and what it keeps says what was done."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import __version__ as TRANSFORMERS

from bench import memory, prefill
from bench.__main__ import SECONDS, TABLES, main
from bench.contest import Case, Entry, contest
from bench.field import Field
from bench.models import LLAMA, TINY, llama, write_gguf
from bench.neighbours import Neighbours, _ours
from bench.player import Refused, Sample, met
from bench.report import verdict
from bench.table import ROOT, Row, Run, Skipped
from bench.worker import Remote
from lab.measure.records import Record, load
from lab.measure.roofline import Ceilings
from lab.measure.work import Piece, step_work
from lab.model.weights import load_model

CPU = torch.device("cpu")


def test_the_longest_prompt_and_its_token_fit_the_model() -> None:
    assert max(tokens for tokens, _ in (*prefill.CASES, *memory.CASES)) < LLAMA["max_position_embeddings"]
    assert max(tokens for tokens, _ in prefill.QUICK) < TINY["max_position_embeddings"]


@pytest.fixture
def without_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours and transformers alone: the others have environments of their own."""

    def absent(player: str) -> Path:
        raise Skipped(f"{player} is not asked for")

    monkeypatch.setattr("bench.field._python", absent)
    monkeypatch.setattr("bench.turns.SETTLE_S", 0)
    monkeypatch.setattr("bench.field.ceilings", lambda *args, **kwargs: Ceilings(1e12, 1e10))  # seconds to measure


def table(name: str, folder: Path) -> Record:
    threads = str(torch.get_num_threads())
    assert main([name, "--quick", "--repeats", "2", "--threads", threads, "--output", str(folder)]) == 0
    return load(next(folder.rglob(f"{name}.json")))


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_all_do_the_same_work(name: str, tmp_path: Path, without_peers: None) -> None:
    """In chunks too, which stand beside our own whole prompt."""
    record = table(name, tmp_path)
    if name == "prefill":
        engines = [row["engine"].split()[:2] for row in record.rows if row["chunk"] == 32]
        assert engines == [["ours"], ["ours", "whole"], ["transformers", TRANSFORMERS]] * 2
    assert {row["dtype"] for row in record.rows} == {"bfloat16", "float32"}
    for row in record.rows:
        assert 0 < row["min_ms"] <= row["ms"] <= row["max_ms"]
        assert row["of_matmul"] > 0 and row["of_bandwidth"] > 0
        if row["dtype"] == "float32":
            assert row["agrees"] == 1.0, row
    assert sum(row["engine"].startswith("transformers") for row in record.rows) == 4
    assert record.environment["busy_elsewhere"] >= 0 and record.environment["load_average"] >= 0
    assert "vllm in bfloat16: vllm is not asked for" in record.parameters["left_out"]


def test_the_gap_beside_a_long_prompt(tmp_path: Path, without_peers: None) -> None:
    record = table("mixed", tmp_path)
    assert [row["budget"] for row in record.rows] == [None, 32] * 2
    for row in record.rows:
        assert row["dtype"] == "bfloat16" or row["agrees"]
    assert any("transformers" in line for line in record.parameters["left_out"])


def test_the_peak_is_the_closed_form(tmp_path: Path) -> None:
    for row in table("memory", tmp_path).rows:
        assert row["ratio"] == 1.0 and row["transformers_bytes"] > 0


def field_of(**changes: Any) -> Field:
    return Field(llama(torch.float32, CPU, **TINY), "float32", Ceilings(1e9, 1e8))


def case_of(*entries: Entry) -> Case:
    field = field_of()
    work = step_work(field.pair.ours.decoder.config, [Piece(1, 8)], torch.float32)
    return Case({"tokens": 8}, [work], 8, entries)


def test_ratios_are_of_medians_and_shares_of_the_ceilings() -> None:
    times = {"ours": iter([9e9, 1.0, 2.0, 60.0]), "theirs": iter([0.0, 4.0, 4.0, 4.0])}
    entries = [Entry(name, lambda ms=ms: Sample(next(ms), [[1, 2]]), 1.0) for name, ms in times.items()]
    case = case_of(*entries)
    ours, theirs = contest(case, field_of(), Run(3, 1, ("float32",), True))
    assert (ours["ms"], ours["min_ms"], ours["max_ms"], theirs["ratio"]) == (2.0, 1.0, 60.0, 0.5)
    assert theirs["tokens_per_s"] == 8 / 4e-3
    assert ours["of_matmul"] == pytest.approx(case.work[0].flops / 2e-3 / 1e9)
    assert ours["of_bandwidth"] == pytest.approx(case.work[0].nbytes / 2e-3 / 1e8)


def test_other_tokens_show_and_who_refuses_is_named() -> None:
    def refuse() -> Sample:
        raise Refused("only one sequence")

    run = Run(1, 1, ("float32",), True)
    entries = [Entry("ours", lambda: Sample(1.0, [[1, 2]])), Entry("theirs", lambda: Sample(1.0, [[1, 3]]))]
    rows = contest(case_of(*entries, Entry("third", refuse)), field_of(), run)
    assert [row["agrees"] for row in rows] == [1.0, 0.5]
    assert run.left_out == ["third, tokens 8: only one sequence"]


def test_who_breaks_down_is_left_out_and_the_others_go_on() -> None:
    left = iter([Sample(1.0, [[1]])] * 2)

    def tire() -> Sample:
        for sample in left:
            return sample
        raise Refused("it ended")

    run = Run(3, 1, ("float32",), True)
    case = case_of(Entry("ours", lambda: Sample(1.0, [[1]])), Entry("theirs", tire))
    (ours,) = contest(case, field_of(), run)
    assert ours["engine"] == "ours" and run.left_out == ["theirs, tokens 8: it ended"]


def test_what_the_time_is_not_enough_for_is_named() -> None:
    run = Run(1, 1, ("bfloat16", "float32"), True, seconds=0.0)
    assert list(run.in_time(["a", "b"], "bfloat16")) == []
    assert list(run.in_time(["c"], "float32")) == []
    over = "too little was left of its share of the 0 s for this table"
    assert run.left_out == [f"a, and 1 more: {over}", f"c: {over}"]
    assert list(Run(1, 1, ("float32",), True).in_time(["a"])) == ["a"]


def test_no_case_is_begun_that_would_not_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken to last as long as the one before it; a dtype has its share, and what the one before it left."""
    now = [0.0]
    monkeypatch.setattr("bench.table.time.monotonic", lambda: now[0])
    run = Run(1, 1, ("bfloat16", "float32"), True, seconds=100.0, _began=0.0)

    def measured(lasting: list[float], dtype: str) -> list[float]:
        begun = []
        for seconds in run.in_time(lasting, dtype):
            begun.append(seconds)
            now[0] += seconds
        return begun

    assert measured([20.0, 20.0, 20.0], "bfloat16") == [20.0, 20.0]
    assert measured([29.0, 29.0, 29.0], "float32") == [29.0, 29.0]
    assert [line[:4] for line in run.left_out] == ["20.0", "29.0"]


def test_the_last_table_has_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch, without_peers: None) -> None:
    now, asked = [0.0], []

    def last_long(run: Run) -> Iterator[Row]:
        asked.append(run.seconds)
        now[0] += 700.0
        return iter(())

    monkeypatch.setattr("bench.__main__.time.monotonic", lambda: now[0])
    for name, table in TABLES.items():
        monkeypatch.setitem(TABLES, name, replace(table, rows=last_long, seconds=1000.0))
    assert main(["mixed", "decode", "prefill", "--threads", "1", "--quick"]) == 0
    assert asked == [1000.0, 1000.0, SECONDS - 1400.0]


@pytest.mark.parametrize("name", ["prefill", "decode", "memory"])
def test_what_is_left_out_says_its_dtype(name: str, without_peers: None) -> None:
    run = Run(1, 1, ("bfloat16", "float32"), True, seconds=0.0)
    assert list(TABLES[name].rows(run)) == []
    late = [line for line in run.left_out if "too little was left" in line]
    assert len(late) == 2 and "bfloat16" in late[0] and "float32" in late[1], late


def test_what_our_own_processes_do_is_no_neighbour() -> None:
    """One that still runs, and one that has ended."""
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    before = _ours()
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = _ours()
        child.communicate(b"\n")
    ticks = 0.2 * os.sysconf("SC_CLK_TCK")
    assert running - before >= ticks and _ours() - before >= ticks


ORPHAN = """
import os, subprocess, sys
from bench.neighbours import _ours, adopt_orphans
{adopt}
burn = "import time\\nwhile time.process_time() < 0.3: pass\\nprint(flush=True)"
leave = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {{burn!r}}])"
before = _ours()
subprocess.run([sys.executable, "-c", leave], stdout=subprocess.PIPE)  # until the orphan has closed the pipe, too
print((_ours() - before) / os.sysconf("SC_CLK_TCK") >= 0.25)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2) is Linux's")
@pytest.mark.parametrize("adopted", [True, False])
def test_what_our_processes_leave_behind_is_no_neighbour(adopted: bool) -> None:
    script = ORPHAN.format(adopt="adopt_orphans()" if adopted else "")
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == f"{adopted}\n"


def test_a_meeting() -> None:
    assert met([1.0, 5.0, 2.0], 7).gap_ms == 5.0 and met([1.0, 5.0, 2.0], 7).ttft_ms == 8.0


def test_a_table_whose_peer_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def absent(environment: str) -> Path:
        raise Skipped(f"{environment} is not installed")

    monkeypatch.setattr("bench.scheduler.python_of", absent)
    assert main(["scheduler", "--quick", "--threads", "1"]) == 0
    assert "left out, from here on: vllm is not installed" in capsys.readouterr().out


def test_every_goal_is_counted() -> None:
    rows = [{"ratio": 1.0, "goal": 1.0, "ours_per_s": 4.0, "at_least_per_s": 5.0}, {"ratio": 2.0}]
    assert verdict(rows, Run(1, 1, (), True), Neighbours()).startswith("1 of 2 goals are reached. ")


def test_a_peer_that_does_not_start_is_skipped_with_its_last_words() -> None:
    with pytest.raises(Skipped, match="No module named 'vllm'"):
        Remote(Path(sys.executable), "vllm", 1, "process", folder=".", dtype="float32", max_model_len=8, max_num_seqs=1)


def test_the_gguf_holds_the_same_weights(tmp_path: Path) -> None:
    pair = llama(torch.float32, CPU, **TINY)
    read = load_model(str(write_gguf(pair, tmp_path / "model.gguf")), dtype="float32", device="cpu").decoder
    for name, weight in pair.ours.decoder.weights.items():
        assert torch.equal(read.weights[name], weight), name
