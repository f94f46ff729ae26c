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
from nbformat import NotebookNode

from tools.settings import LANGUAGES, ROOT
from tools.source import Chapter, read_chapter


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
    title_zh: str = ""
    title_en: str = ""
    expected_zh: str = ""
    expected_en: str = ""
    tests: tuple[str, ...] = ()
    measured: tuple[Measured, ...] = ()
    problems: tuple[str, ...] = field(default=(), repr=False)

    def text(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en

    def title(self, lang: str) -> str:
        """The heading of the section."""
        return self.title_zh if lang == "zh" else self.title_en

    def expected(self, lang: str) -> str:
        return self.expected_zh if lang == "zh" else self.expected_en


def read_claims(root: Path = ROOT) -> list[Claim]:
    """Every claim, filled in from the pages under `root`; what leads nowhere is in its `problems`."""
    rows = tomllib.loads((root / "data/claims.toml").read_text(encoding="utf-8"))["claim"]

    @cache
    def chapter(page: str) -> Chapter:
        return read_chapter(root / f"chapters/src/{page}.md")

    @cache
    def notebook(page: str) -> NotebookNode:
        return nbformat.read(root / f"chapters/en/{page}.ipynb", as_version=4)

    def filled(row: dict[str, Any]) -> Claim:
        page, _, anchor = row.get("section", "").partition("#")
        patterns, tests = row.pop("measured", ()), tuple(row.pop("tests", ()))
        problems = [f"test {test} is not there" for test in tests if not has_test(test, root)]
        if page and anchor in chapter(page).anchors:
            row |= {f"title_{lang}": chapter(page).title(anchor, lang) for lang in LANGUAGES}
        elif page:
            problems.append(f"{page} has no section #{anchor}")
        found = {pattern: _find(pattern, page, notebook(page)) for pattern in patterns}
        problems += [f"no output of {page} matches {pattern!r}" for pattern in patterns if not found[pattern]]
        return Claim(**row, tests=tests, measured=tuple(filter(None, found.values())), problems=tuple(problems))

    return [filled(row) for row in rows]


def _find(pattern: str, page: str, notebook: NotebookNode) -> Measured | None:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if line := re.search(pattern, output.get("text", ""), re.M):
                value, run = " ".join(line[0].split()), dict(notebook.metadata.book.run)
                return Measured(value, f"chapters/en/{page}.ipynb", cell.id, run)
    return None


@cache
def has_test(test: str, root: Path) -> bool:
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
