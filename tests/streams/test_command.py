"""`python -m lab streams` as a reader types it."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from lab.streams import programs


@pytest.fixture(autouse=True)
def english(monkeypatch):
    monkeypatch.setenv("BOOK_LANG", "en")


def test_the_list(lab, monkeypatch):
    status, out, _ = lab("streams", "--json")
    assert status == 0 and "read on one stream before it was written on the other" in out
    assert json.loads(out.splitlines()[-1])["war"] == ["broken", "wait", "second-buffer", "copy-out"]
    monkeypatch.setenv("BOOK_LANG", "zh")
    assert "另一条流还没写完就读了" in lab("streams")[1]


def test_a_program(lab):
    status, out, _ = lab("streams", "war", "--json")
    document = json.loads(out.splitlines()[-1])
    assert status == 0 and "NO" in out and "broken: write after read: `x = 7` (main, handoff.py:" in out
    rows = {row["variant"]: row for row in document["variants"]}
    assert document["backend"] == "model" and all(row["as_expected"] for row in rows.values())
    assert [rows[name]["device_bytes"] for name in ("broken", "wait", "copy-out")] == [0, 0, 2**20]
    assert rows["broken"]["value"] == 8 and rows["wait"]["value"] == rows["wait"]["want"] == 2
    (hazard,) = rows["broken"]["hazards"]
    assert (hazard["kind"], hazard["first"]["stream"], hazard["second"]["stream"]) == (
        "write-after-read",
        "side",
        "main",
    )
    assert rows["wait"]["critical_path"] == ["y = x + 1", "x = 7"]


def test_one_variant_and_its_picture(lab, tmp_path):
    path = tmp_path / "lanes.svg"
    status, out, _ = lab("streams", "graph", "--variant", "unjoined", "--picture", str(path))
    assert status == 0 and "unjoined: capture refused: unjoined" in out and f"drew {path}" in out
    assert "joined " not in out.replace("unjoined", "")
    assert path.read_text(encoding="utf-8").startswith("<svg ")


def test_a_verdict_that_is_not_the_expected_one_is_status_1(lab, monkeypatch):
    raw = programs.find("raw")
    wrong = replace(raw, variants=(replace(raw.variant("broken"), hazards=frozenset()),))
    monkeypatch.setitem(programs.PROGRAMS, "raw", wrong)
    status, out, _ = lab("streams", "raw")
    assert status == 1 and "broken: NOT what the catalogue expects: no hazard" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nope"], "no program 'nope': choose from raw, "),
        (["raw", "--variant", "nope"], "raw has no variant 'nope': choose from broken, lucky, event, stream"),
        (["--variant", "broken"], "--variant, --picture and --trace need a program"),
        (["raw", "--picture", "/nowhere/at/all.svg"], "cannot write /nowhere/at/all.svg: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(lab, argv, message):
    status, _, err = lab("streams", *argv)
    assert status == 2 and message in err and err.count("\n") == 1


def test_it_starts_without_torch():
    code = (
        "import sys; from lab.cli import main; main(['streams', 'raw']); print({'torch', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
