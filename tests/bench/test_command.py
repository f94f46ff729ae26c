"""`python -m bench`: asked wrongly, or unable to write, it says so in one line; cut off, it keeps what is whole."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import TABLES, main
from bench.neighbours import TUNABLES


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.__main__.adopt_orphans", lambda: None)  # the tests' own processes stay what they are


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nothing"], "'nothing' is no table; there is mixed, "),
        (["memory", "--threads", "0"], "--threads: '0' must be a whole number from 1 on"),
        (["memory", "--threads", "-3"], "--threads: '-3' must be a whole number from 1 on"),
        (["memory", "--repeats", "x"], "--repeats: 'x' must be a whole number from 1 on"),
        (["memory", "--dtype"], "--dtype: expected at least one argument"),
    ],
)
def test_what_can_not_be_asked(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert said in capsys.readouterr().err


def test_help_names_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "[TABLE ...]" in text and "scheduler, simulators" in text and "[]" not in text


def test_where_it_can_not_write_it_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.__main__.measure", lambda *args: pytest.fail("measured"))
    assert main(["memory", "--threads", "1", "--output", f"{sys.executable}/x"]) == 2
    assert capsys.readouterr().err.startswith("error: cannot write into the folder ")


def test_cut_off_it_keeps_what_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cut_off(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(TABLES, "decode", replace(TABLES["decode"], rows=cut_off))
    argv = ["memory", "decode", "--quick", "--dtype", "float32", "--threads", "1", "--output", str(tmp_path)]
    assert main(argv) == 130
    assert [path.name for path in tmp_path.rglob("*.json")] == ["memory.json"]
    assert capsys.readouterr().err.splitlines()[-1].startswith("cut off")


@pytest.mark.skipif(sys.platform != "linux", reason="the tunable is glibc's")
@pytest.mark.parametrize("given", [{}, {"GLIBC_TUNABLES": ""}])
def test_it_starts_as_on_a_quiet_machine_unless_told_otherwise(given: dict[str, str], tmp_path: Path) -> None:
    names = {"GLIBC_TUNABLES", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}
    environment = {name: value for name, value in os.environ.items() if name not in names} | given
    argv = ["memory", "--quick", "--dtype", "float32", "--threads", "1", "--output", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "bench", *argv], check=True, env=environment)
    (path,) = tmp_path.rglob("*.json")
    found = {name: value for name, value in json.loads(path.read_text())["environment"].items() if name in names}
    quiet = {**TUNABLES, "GOMP_SPINCOUNT": "300000", "OMP_WAIT_POLICY": None}
    lab = {"GLIBC_TUNABLES": "", "GOMP_SPINCOUNT": "10000", "OMP_WAIT_POLICY": "PASSIVE"}
    assert found == (lab if given else quiet)
