"""The recorded suites: what they hold, and that a run cut off goes on from where it was."""

import json
from dataclasses import replace

import pytest
import torch

from lab.checks import rows, suite
from lab.checks.suite import SUITES, Experiment, jobs, make_experiment, passed
from lab.cli import main
from lab.commands import record as command
from lab.measure.records import Record, find, load, path_of, save
from lab.measure.roofline import Ceilings

torch.set_num_threads(1)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"PROMPT_TOKENS": 30, "CHUNK_SIZES": (8, 16), "LENGTHS": (16, 32), "REPEATS": 1}
    for name, value in (sizes | {"PREFILL_TOKENS": (1, 8), "DECODE_BATCHES": (1, 2)}).items():
        monkeypatch.setattr(suite, name, value)
    monkeypatch.setattr(suite, "ceilings", lambda device, dtype: Ceilings(1e11, 1e10))


def experiment(name: str, dtype: str = "float32") -> Experiment:
    return make_experiment((name, dtype), "tiny", CPU, 0)


def test_jobs() -> None:
    assert jobs(["memory", "cost"], CPU) == [
        ("memory", "float32"), ("memory", "bfloat16"), ("memory", "float16"), ("cost", "float32"),
    ]  # fmt: skip
    assert tuple(SUITES) == command.SUITES


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_makes_a_record_that_is_whole(name: str, tmp_path) -> None:
    made = experiment(name).record({"device": "here", "date": "today"})
    assert passed(made) and made.rows and made.experiment == f"{name}-float32"
    save(made, tmp_path)
    assert load(path_of(made, tmp_path)).rows[0].keys() == made.rows[0].keys()
    assert not {"chunk_size", "prompt_tokens", "tokens", "kind"} & made.units.keys()  # settings are no measurements


def test_memory_is_predicted_and_kv_does_not_change() -> None:
    made = experiment("memory", "bfloat16").record({"device": "here"})
    cells = ((16, 8), (16, 16), (32, 8), (32, 16), (32, 32))
    assert [(row["attention"], row["prompt_tokens"], row["chunk_size"]) for row in made.rows] == [
        (name, *cell) for name in ("sdpa", "math") for cell in cells
    ]
    assert all(row["peak_bytes"] == row["predicted_bytes"] and row["allocator_bytes"] is None for row in made.rows)
    assert {row["kv_bytes"] for row in made.rows if row["prompt_tokens"] == 32} == {32 * 2 * 4 * 2 * 32 * 2}


def test_a_wrong_ledger_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rows.step_peak
    monkeypatch.setattr(rows, "step_peak", lambda step: replace(right(step), parts={"one byte": 1}))
    assert not passed(experiment("memory").record({"device": "here"}))


def test_what_is_there_is_found(tmp_path) -> None:
    made = Record("x", {"sizes": (1, 2)}, [{"n": 1}], {"device": "here", "torch": "2", "date": "today"})
    assert find("x", made.parameters, made.environment, tmp_path) is None
    save(made, tmp_path)
    again = {"device": "here", "torch": "2", "date": "tomorrow"}
    assert find("x", {"sizes": [1, 2]}, again, tmp_path) == load(path_of(made, tmp_path))
    assert find("x", {"sizes": (1, 3)}, again, tmp_path) is None
    assert find("x", made.parameters, again | {"torch": "3"}, tmp_path) is None
    path_of(made, tmp_path).write_text("{")  # damaged: measured again
    assert find("x", made.parameters, again, tmp_path) is None


def test_a_run_cut_off_goes_on(tmp_path, monkeypatch, capsys) -> None:
    argv = ["record", "--suite", "all", "--model", "tiny", "--device", "cpu", "--out", str(tmp_path)]
    cost = suite.SUITES["cost"]
    monkeypatch.setitem(suite.SUITES, "cost", lambda decoder, seed: ({}, interrupted))
    assert main(argv) == 130
    assert len(list(tmp_path.rglob("*.json"))) == 6 and not list(tmp_path.rglob("*.part"))
    monkeypatch.setitem(suite.SUITES, "cost", cost)
    capsys.readouterr()
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["kept" in line for line in lines] == [True] * 6 + [False] * 2
    assert main([*argv, "--seed", "1"]) == 0 and "kept" not in capsys.readouterr().out


def interrupted() -> None:
    raise KeyboardInterrupt


def test_a_kept_mismatch_is_still_one(tmp_path) -> None:
    argv = ["record", "--suite", "memory", "--model", "tiny", "--device", "cpu", "--out", str(tmp_path)]
    assert main(argv) == 0
    path = next(tmp_path.rglob("memory-float32.json"))
    path.write_text(path.read_text().replace('"match": true', '"match": false', 1))
    assert json.loads(path.read_text()) and main(argv) == 1
