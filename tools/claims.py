"""The claims ledger: data/claims.toml says what is claimed, the notebooks' outputs say what was measured.

`python -m tools.sync` writes what comes out to data/claims.json, and as a page (tools/claims_page.py). A claim without
a measured value is listed as not yet measured. Nothing measured is typed anywhere.
"""

import ast
import json
import re
import tomllib
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from tools.settings import ROOT
from tools.source import read_chapter


@dataclass(frozen=True)
class Measured:
    """One line that a run printed: in which cell of which notebook, and the run (device, versions, date)."""

    value: str
    notebook: str
    cell: str
    run: dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """A row of data/claims.toml, with what its patterns found. `section` is PAGE#ANCHOR, "" if no page shows it yet."""

    id: str
    zh: str
    en: str
    section: str = ""
    expected_zh: str = ""
    expected_en: str = ""
    tests: tuple[str, ...] = ()
    measured: tuple[Measured, ...] = ()
    problems: tuple[str, ...] = field(default=(), repr=False)

    def text(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en

    def expected(self, lang: str) -> str:
        return self.expected_zh if lang == "zh" else self.expected_en


def read_claims(root: Path = ROOT) -> list[Claim]:
    """Every claim, filled in from the notebooks under `root`."""
    rows = tomllib.loads((root / "data/claims.toml").read_text(encoding="utf-8"))["claim"]
    return [_filled(row, root) for row in rows]


def _filled(row: dict[str, Any], root: Path) -> Claim:
    page, _, anchor = row.get("section", "").partition("#")
    problems = [f"test {test} is not there" for test in row.get("tests", ()) if not _test_exists(test, root)]
    if page and anchor not in read_chapter(root / f"chapters/src/{page}.md").anchors:
        problems.append(f"{page} has no section #{anchor}")
    measured = []
    for pattern in row.pop("measured", ()):
        if found := _find(pattern, root / f"chapters/en/{page}.ipynb", root):
            measured.append(found)
        else:
            problems.append(f"no output of {page} matches {pattern!r}")
    tests = tuple(row.pop("tests", ()))
    return Claim(**row, tests=tests, measured=tuple(measured), problems=tuple(problems))


def _find(pattern: str, path: Path, root: Path) -> Measured | None:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if line := re.search(pattern, output.get("text", ""), re.M):
                value = " ".join(line[0].split())
                return Measured(value, str(path.relative_to(root)), cell.id, dict(notebook.metadata.book.run))
    return None


@cache
def _test_exists(test: str, root: Path) -> bool:
    file, _, name = test.partition("::")
    if not name or not (root / file).exists():
        return not name and (root / file).exists()
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


def problems(claims: list[Claim]) -> list[str]:
    return [f"claim {claim.id}: {problem}" for claim in claims for problem in claim.problems]


def as_json(claims: list[Claim]) -> str:
    rows = [{name: value for name, value in asdict(claim).items() if name != "problems"} for claim in claims]
    return json.dumps({"claims": rows}, ensure_ascii=False, indent=1) + "\n"
