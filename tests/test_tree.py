"""What the tree promises: it stays small, and imports run one way."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

LAB = Path(__file__).parent.parent / "lab"
MINIMAL = ("core", "model", "engine")
MAX_CODE_LINES = 2000
NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    tokenize.ENCODING,
}  # fmt: skip

# What each part of lab may import from lab, beside itself.
MAY_IMPORT = {
    "core": set(),
    "model": {"core"},
    "policies": {"core"},
    "sim": {"core", "policies"},
    "sweep": {"core", "sim"},
    "engine": {"core", "model", "policies"},
    "measure": {"core", "model"},
    "checks": {"core", "model", "engine", "measure", "sim", "streams", "streams_torch"},
    "live": {"core", "policies", "sim", "streams"},
    "perfetto": {"core", "streams"},
    "show": {"core", "live", "measure", "sim", "streams"},
    "streams": {"core"},
    "streams_torch": {"core", "model", "engine", "streams"},
}


def code_lines(source: str) -> int:
    """Lines that hold code: neither blank, nor comment, nor docstring."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_minimal_is_a_promise():
    counts = {part: sum(code_lines(path.read_text()) for path in (LAB / part).rglob("*.py")) for part in MINIMAL}
    assert sum(counts.values()) < MAX_CODE_LINES, counts


def test_the_counter_counts_code_only():
    head = '"""Doc."""\n\n# why\nx = [\n    1,  # one\n]\n\n'
    source = head + 'def f():\n    """Doc\n    more."""\n    return """a\nb"""\n'
    assert code_lines(source) == 6  # x = [ 1, ] | def f() | return and its second line


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_run_one_way(part):
    for path in (LAB / part).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("lab."):
                    other = name.split(".")[1]
                    assert other == part or other in MAY_IMPORT[part], f"{path.name} imports {name}"


A_PLACE = re.compile(r'"(/[\w.-]+){2,}|"[A-Z]:\\\\')


def test_no_record_says_where_on_a_machine_it_was_made():
    assert A_PLACE.search('"source": "/somewhere/deep/model.gguf"') and not A_PLACE.search('"unit": "tokens/s"')
    for path in (LAB.parent / "data").rglob("*.json"):
        assert not A_PLACE.search(path.read_text(encoding="utf-8")), path.name
