"""The recorded suites: what they hold, and that a run cut off goes on from where it was."""

import json
from dataclasses import replace

import pytest
import torch

from lab.checks import cost_models, rows, suite
from lab.checks.claims import CLAIMS, problems
from lab.checks.rows import UNITS
from lab.checks.sizes import SLICE, Sizes
from lab.checks.suite import SECONDS, SUITES, Experiment, jobs, make_experiment
from lab.cli import main
from lab.commands import record as command
from lab.measure.records import Record, find, load, path_of, save
from lab.model.device import DTYPES

torch.set_num_threads(1)
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
ENVIRONMENT = {"device": "here", "torch": "2", "python": "3", "lab": "1", "date": "today"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all suites these are the ones that take next to no time; `test_claims` runs the others."""
    sizes = Sizes(prompt=30, chunk_sizes=(8, 16), memory_lengths=(16, 32), memory_chunk_sizes=(8, 16),
                  repeats=1)  # fmt: skip
    monkeypatch.setattr(suite, "SMALL", sizes)
    monkeypatch.setattr(command, "SUITES", ("prefill", "memory"))


def experiment(name: str, dtype: str = "float32") -> Experiment:
    return make_experiment((name, dtype), "tiny", CPU, 0)


def test_jobs() -> None:
    assert jobs(["memory", "cost"], CPU) == [
        ("memory", "float32"), ("memory", "bfloat16"), ("memory", "float16"), ("cost", "float32"),
    ]  # fmt: skip


def test_every_suite_is_known_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert tuple(SUITES) == command.SUITES
    assert SECONDS.keys() == CLAIMS.keys() == {*SUITES, "streams"}


def test_all_on_a_t4_is_predicted_below_eight_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    on_a_t4 = jobs([*SUITES, "streams"], GPU)
    assert [dtype for name, dtype in on_a_t4 if name == "bits"] == ["float32", "float16"]
    assert sum(SECONDS[name] for name, _ in on_a_t4) < 8 * 60


def test_memory_is_predicted_and_kv_does_not_change() -> None:
    made = experiment("memory", "bfloat16").record(ENVIRONMENT)
    cells = ((16, 8), (16, 16), (32, 8), (32, 16), (32, 32))
    assert [(row["attention"], row["prompt_tokens"], row["chunk_size"]) for row in made.rows] == [
        *(("sdpa", *cell) for cell in cells), *(("math", *cell) for cell in cells[:2]),
    ]  # fmt: skip
    assert all(row["peak_bytes"] == row["predicted_bytes"] and row["allocator_bytes"] is None for row in made.rows)
    assert {row["kv_bytes"] for row in made.rows if row["prompt_tokens"] == 32} == {32 * 2 * 4 * 2 * 32 * 2}


def test_settings_are_no_measurements() -> None:
    assert not {"chunk_size", "prompt_tokens", "tokens", "kind", "budget", "part", "setting", "case"} & UNITS.keys()


def test_a_wrong_ledger_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rows.step_peak
    monkeypatch.setattr(rows, "step_peak", lambda step: replace(right(step), parts={"one byte": 1}))
    assert problems(experiment("memory").record(ENVIRONMENT))


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
    monkeypatch.setattr("lab.measure.environment.commit", lambda: None)  # somebody may commit meanwhile
    argv = ["record", "--suite", "all", "--model", "tiny", "--device", "cpu", "--out", str(tmp_path)]
    memory = suite.SUITES["memory"]
    monkeypatch.setitem(suite.SUITES, "memory", lambda decoder, sizes, seed: ({}, interrupted))
    assert main(argv) == 130
    assert len(list(tmp_path.rglob("*.json"))) == 3 and not list(tmp_path.rglob("*.part"))
    monkeypatch.setitem(suite.SUITES, "memory", memory)
    capsys.readouterr()
    assert main(argv) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "rows" in line]
    assert ["kept" in line for line in lines] == [True] * 3 + [False] * 3
    argv[argv.index("all")] = "memory"
    assert main([*argv, "--seed", "1"]) == 0 and "kept" not in capsys.readouterr().out


def interrupted() -> None:
    raise KeyboardInterrupt


def test_a_kept_record_is_checked_again(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("lab.measure.environment.commit", lambda: None)
    argv = ["record", "--suite", "memory", "--model", "tiny", "--device", "cpu", "--out", str(tmp_path)]
    assert main(argv) == 0 and main(["verify", str(tmp_path)]) == 0
    path = next(tmp_path.rglob("memory-float32.json"))
    document = json.loads(path.read_text())
    document["rows"][0]["peak_bytes"] += 1
    path.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(argv) == 1 and "MISMATCH" in capsys.readouterr().out
    assert main(["verify", str(path)]) == 1
    assert "memory-float32.json: FAILED\n  sdpa, 16 tokens in chunks of 8: " in capsys.readouterr().out


def test_what_verify_says_of_other_files(tmp_path, capsys) -> None:
    fitted = next(cost_models.ROOT.glob("*.json"))
    for beside in ([], [str(fitted)]):  # an empty folder is no record that holds, whatever else does
        assert main(["verify", *beside, str(tmp_path)]) == 2
        assert f"there is no record in {tmp_path};" in capsys.readouterr().err
    path = save(Record("somebody-s-log", {}, [{"n": 1}], {"device": "There"}), tmp_path)
    assert main(["verify", str(tmp_path)]) == 0 and "nothing is claimed of it" in capsys.readouterr().out
    moved = tmp_path / "elsewhere" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    assert main(["verify", str(moved)]) == 1 and "it is in another's place" in capsys.readouterr().out
    assert main(["verify", str(fitted)]) == 0
    moved.write_text(fitted.read_text())
    assert main(["verify", str(moved)]) == 1
    assert f"its numbers are of {fitted.name}: it is in another's place" in capsys.readouterr().out
    moved.write_text("{")
    assert main(["verify", str(moved)]) == 1 and "is not JSON" in capsys.readouterr().out


def test_the_slice_fits_a_small_gpu() -> None:
    """Weights in float64, the reference of float32, beside those in float32: in a T4's 15 GB with room to spare."""
    weights = sum(torch.Size(shape).numel() for shape in SLICE.parameter_shapes().values())
    assert weights * (DTYPES["float64"].itemsize + DTYPES["float32"].itemsize) < 3 * 2**30
