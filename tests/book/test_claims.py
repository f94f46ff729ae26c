"""The claims ledger: every claim of the book, each measured value out of a run, each test there."""

import json
import re
import shutil

import nbformat
import pytest

from tools.claims import problems, read_claims
from tools.claims_page import as_page
from tools.settings import ROOT
from tools.sync import sync_claims

CLAIMS = read_claims()
IDS = ["R1", *(f"C{n}" for n in range(1, 11)), *(f"A{n}" for n in range(1, 6)), *(f"S{n}" for n in range(1, 7))]


@pytest.fixture
def copy(tmp_path):
    """What the ledger is made of, to change at will."""
    shutil.copytree(ROOT / "chapters", tmp_path / "chapters")
    (tmp_path / "data").mkdir()
    for name in ("claims.toml", "claims.json"):
        shutil.copy(ROOT / "data" / name, tmp_path / "data")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def change(path, pattern, new):
    text = path.read_text(encoding="utf-8")
    changed = re.sub(pattern, new, text, count=1)
    assert changed != text
    path.write_text(changed, encoding="utf-8")


def test_every_claim_has_a_row_and_no_row_has_a_problem():
    assert [claim.id for claim in CLAIMS] == IDS
    assert problems(CLAIMS) == []
    assert sync_claims(ROOT, check=True) == []


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.measured], ids=lambda claim: claim.id)
def test_a_measured_claim_is_whole_and_comes_from_a_run(claim):
    assert claim.section and claim.expected_zh and claim.expected_en and claim.tests
    for found in claim.measured:
        notebook = nbformat.read(ROOT / found.notebook, as_version=4)
        (cell,) = [cell for cell in notebook.cells if cell.id == found.cell]
        printed = " ".join(" ".join(output.get("text", "") for output in cell.outputs).split())
        assert found.value in printed
        assert found.run == notebook.metadata.book.run
        assert all(found.run[key] for key in ("device", "date", "python", "torch", "lab"))


def test_the_data_says_what_the_page_says():
    rows = json.loads((ROOT / "data/claims.json").read_text(encoding="utf-8"))["claims"]
    page = as_page(CLAIMS)
    for row in rows:
        assert row["zh"] in page and row["en"] in page
        assert all(page.count(f"`{found['value']}`") >= 2 for found in row["measured"])  # once a language


def test_another_run_is_another_ledger(copy):
    change(copy / CLAIMS[0].measured[0].notebook, r'("date": )"\d+', r'\1"2031')
    assert {path.name for path in sync_claims(copy, check=True)} == {"claims.json", "claims.md"}
    sync_claims(copy)
    assert '"date": "2031-' in (copy / "data/claims.json").read_text(encoding="utf-8")
    assert sync_claims(copy, check=True) == []


@pytest.mark.parametrize(
    ("pattern", "new", "reported"),
    [
        (r'tests = \["([^:"]*)::\w+', r'tests = ["\1::test_gone', "claim R1: test .*::test_gone is not there"),
        (r'section = "([^#]*)#', r'section = "\1#no-', "claim R1: .* has no section #no-"),
        (r'measured = \["', 'measured = ["NEVER PRINTED ', "claim R1: no output of .* matches 'NEVER PRINTED"),
    ],
)
def test_what_does_not_lead_anywhere_is_reported(copy, pattern, new, reported):
    assert problems(read_claims(copy)) == problems(CLAIMS)
    change(copy / "data/claims.toml", pattern, new)
    assert any(re.match(reported, line) for line in problems(read_claims(copy)))
