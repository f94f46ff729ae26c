"""The commands that the pages print are commands: each is parsed as a reader would type it."""

import re
import shlex

import pytest

from lab.cli import build_parser
from tools.settings import ROOT, SOURCES

PAGES = [*sorted(SOURCES.glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
COMMAND = re.compile(r"python -m lab ([a-z]+[^`\n]*)")
PRINTED = sorted({line for page in PAGES for line in COMMAND.findall(page.read_text(encoding="utf-8"))})


def status(line: str) -> int:
    """Of its parsing; one that is only named, without arguments, is asked for its help."""
    words = shlex.split(line)
    try:
        build_parser().parse_args(words if len(words) > 1 else [*words, "--help"])
    except SystemExit as exit:
        return int(exit.code or 0)
    return 0


@pytest.mark.parametrize("line", PRINTED)
def test_a_printed_command_parses(line: str) -> None:
    assert status(line) == 0


@pytest.mark.parametrize("line", ["tune --trace FILE --slo ttft=1s", "streams raw --backend gpu", "tuna"])
def test_one_that_does_not_is_seen(line: str) -> None:
    assert status(line) == 2


def test_the_pages_print_commands() -> None:
    assert len(PRINTED) > 20 and any(line.startswith("tune ") for line in PRINTED)
