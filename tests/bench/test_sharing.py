"""What an installation takes is counted on a package of one file, made here."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from bench import sharing
from bench.neighbours import Neighbours
from bench.report import record
from bench.sharing import Installed, install
from bench.table import ROOT, Run

METADATA = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheel(tmp_path: Path) -> str:
    path = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", "#" * 100_000)
        for name, text in (("METADATA", METADATA), ("WHEEL", WHEEL), ("RECORD", "")):
            archive.writestr(f"tiny-1.0.dist-info/{name}", text)
    return str(path)


def test_an_installation_is_what_it_added(wheel: str, tmp_path: Path) -> None:
    found = install([wheel], tmp_path / "cache")
    assert found.packages == 1 and 100_000 < found.bytes < 200_000
    assert found.wall > 0 and found.processor > 0


def test_what_does_not_install_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(packages: list[str], cache: Path) -> Installed:
        if packages == sharing.INSTALLED["vidur"]:
            raise subprocess.TimeoutExpired("pip", 7)
        if packages != sharing.INSTALLED["sched-sim"]:
            (cache / "wheel").write_bytes(b"1234")
        return Installed(2.0, 1.0, 10, 3)

    monkeypatch.setattr(sharing, "install", fake)
    run = Run(1, 1, (), False)
    rows = list(sharing.rows(run))
    assert [row["installed"] for row in rows] == [name for name in sharing.INSTALLED if name != "vidur"]
    assert all(row["cached_bytes"] == 4 for row in rows[:-1]) and rows[-1]["cached_bytes"] is None
    assert all(row["warm_s"] == 2.0 for row in rows)
    assert len(run.left_out) == 1 and run.left_out[0].startswith("vidur: ") and "7 seconds" in run.left_out[0]


def test_once_is_not_called_a_median_of_five() -> None:
    parameters = record("sharing", sharing.TABLE, [], Run(5, 1, (), False), Neighbours()).parameters
    assert parameters["repeats"] == 1 and parameters["warmup"] == 0


def test_peers_are_those_that_make_bench_installs() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "requirements.txt"))
    for name, packages in sharing.INSTALLED.items():
        assert sharing.TORCH in packages or name in ("llama-cpp-python", "sched-sim", "vidur"), "any other would differ"
        assert all("==" in package and package in text for package in packages if package != str(ROOT))
