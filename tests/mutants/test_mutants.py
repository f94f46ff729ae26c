"""A few planted mutants must fail the tests that are for them; `make mutants`, which takes long, plants all."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.mutants import mutants, read_list
from tools.mutate import EQUIVALENT, ROOT, TARGETS

PLANTED = Path(__file__).parent / "planted.txt"
CORE = ("tests/core/test_block_pool.py", "tests/core/test_scheduler.py")
MODEL = ("tests/model/test_batch.py", "tests/model/test_attention.py::test_mask")


def mutate(files: Iterable[str], tests: Iterable[str], only: Path = PLANTED) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tools.mutate", *files, "--only", str(only), "--tests", *tests]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_every_planted_mutant_is_killed_by_the_tests_of_its_part():
    files = sorted({place.split()[0] for place, _, _ in read_list(PLANTED)})
    side_by_side = [
        mutate([file for file in files if file.startswith("lab/core")], CORE),
        mutate([file for file in files if file.startswith("lab/model")], MODEL),
    ]
    outputs = [run.communicate()[0] for run in side_by_side]
    assert [run.returncode for run in side_by_side] == [0, 0], outputs
    assert sum(output.count("killed: ") for output in outputs) == len(read_list(PLANTED)) == 14


def test_a_survivor_is_an_error(tmp_path):
    mutant = ("lab/core/plan.py PlanDraft.cut", "- return min(num_tokens, self.cap, self.left)",
              "+ return max(num_tokens, self.cap, self.left)", "a word")  # fmt: skip
    (tmp_path / "one.txt").write_text("\n".join(mutant))
    run = mutate(["lab/core/plan.py"], ["tests/core/test_request.py"], only=tmp_path / "one.txt")
    output = run.communicate()[0]
    assert run.returncode == 1 and "SURVIVED: lab/core/plan.py:" in output, output


def test_the_operators():
    source = """
def f(a: int = 0) -> int:
    \"\"\"Adds 1.\"\"\"
    if not a < len(x) - 1:
        raise ValueError(f"{a + 1}")
    return max(a, x[:a], True)
"""
    assert [(m.line, m.scope, m.new) for m in mutants("file.py", source.encode())] == [
        (2, "f", "def f(a: int = 1) -> int:"),
        (4, "f", "if True:"),
        (4, "f", "if False:"),
        (4, "f", "if a < len(x) - 1:"),
        (4, "f", "if not a <= len(x) - 1:"),
        (4, "f", "if not a < len(x) + 1:"),
        (4, "f", "if not a < len(x) - 2:"),
        (4, "f", "if not a < len(x) - 0:"),
        (5, "f", "pass"),
        (6, "f", "pass"),
        (6, "f", "return min(a, x[:a], True)"),
        (6, "f", "return max(a, x[:a + 1], True)"),
        (6, "f", "return max(a, x[:a], False)"),
    ]


def test_every_mutant_called_equivalent_exists_and_has_a_reason():
    existing = {mutant.key for file in TARGETS for mutant in mutants(file, (ROOT / file).read_bytes())}
    for key, reason in read_list(EQUIVALENT).items():
        assert key in existing, key
        assert len(reason.split()) > 3, key
