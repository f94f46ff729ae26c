"""Mutation tests: change one thing in the code, and a test must fail. `make mutants` takes hours on one core.

The operators are fixed, see `variants`. A mutant that no test can kill since nothing one may rely on has changed stands
with its reason in `tests/mutants/equivalent.txt`; any other survivor is a test that is missing. Out of scope:
docstrings, annotations, the arguments of `raise`, and what stands in f-strings.
"""

import argparse
import ast
import copy
import itertools
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tests/mutants/equivalent.txt"
OPTIONS = ("-p", "no:cacheprovider", "-p", "no:xdist")
VERDICTS = {  # (survived, listed as equivalent)
    (False, False): "killed",
    (True, True): "equivalent",
    (True, False): "SURVIVED",
    (False, True): "KILLED, not equivalent",
}
MEMORY_LIMIT = 8 * 2**30  # bytes: a loop without an end shall not take the machine

# What must kill the mutants of a file: the fastest tests first, since the first failure ends the run.
CORE = (
    "tests/core/test_block_pool.py",
    "tests/core/test_request.py",
    "tests/core/test_scheduler.py",
    "tests/core/test_loop.py",
    "tests/checks/test_conform.py",
    "tests/core/test_invariants.py",
)
ENGINE = ("tests/engine", "tests/checks/test_equivalence.py")
MODEL = (
    *(f"tests/model/test_{name}.py" for name in ("batch", "varlen", "config", "attention", "oracle")),
    "tests/measure/test_ledger.py",  # it must be right, and take no more memory than it says
    *ENGINE,
)
TARGETS = {
    **{f"lab/core/{name}.py": CORE for name in ("scheduler", "waiting_queue", "block_pool", "request", "config")},
    **{f"lab/model/{name}.py": MODEL for name in ("batch", "kv_store", "rope", "attention", "sdpa", "varlen")},
    **{f"lab/engine/{name}.py": ENGINE for name in ("executor", "sampling")},
}

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
DELETED = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Return, ast.Raise, ast.Assert)


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    scope: str  # the class and function around it
    old: str  # the line, without its indent
    new: str
    source: str  # the whole file, changed

    @property
    def key(self) -> tuple[str, str, str]:
        """Names it in a list; no line number, so that the list outlives changes elsewhere in the file."""
        return f"{self.path} {self.scope}".strip(), f"- {self.old}", f"+ {self.new}"


def variants(node: ast.AST) -> Iterator[tuple[Any, ast.AST]]:
    """The operators: (node to replace, what with), for this node with its children as they are."""
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield node, changed(node, ops=[*node.ops[:i], SWAPS[type(op)](), *node.ops[i + 1 :]])
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in SWAPS:
            yield node, changed(node, op=SWAPS[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, node.operand
        case ast.Call(func=ast.Name("min" | "max" as name)):
            yield node, changed(node, func=ast.Name("max" if name == "min" else "min"))
        case ast.Constant(bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield node, ast.Constant(value + 1)
            if value == 1:
                yield node, ast.Constant(0)
        case ast.Slice():
            for bound in ("lower", "upper"):
                if (old := getattr(node, bound)) is not None:
                    yield node, changed(node, **{bound: ast.BinOp(old, ast.Add(), ast.Constant(1))})
        case ast.Break() | ast.Continue():
            yield node, ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    tests = getattr(node, "ifs", [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else [])
    for test, value in itertools.product(tests, (True, False)):
        yield test, ast.Constant(value)
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, DELETED) and getattr(node, "value", node) is not None and not is_docstring:
        yield node, ast.Pass()


def changed(node: ast.AST, **fields: object) -> ast.AST:
    twin = copy.copy(node)
    for name, value in fields.items():
        setattr(twin, name, value)
    return twin


def in_scope(node: ast.AST, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The node and all below it, each with the class and function around it, but for what is out of scope."""
    yield scope, node
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        scope = f"{scope}.{node.name}".lstrip(".")
    for name, child in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for item in child if isinstance(child, list) else [child]:
                if isinstance(item, ast.AST):
                    yield from in_scope(item, scope)


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """All mutants of a file. The text is changed in its place, so all else keeps its line."""
    lines = source.splitlines(keepends=True)
    begins = [0, *itertools.accumulate(map(len, lines))]
    for scope, parent in in_scope(ast.parse(source)):
        for node, replacement in variants(parent):
            line, end_line = node.lineno - 1, node.end_lineno - 1
            start, stop = begins[line] + node.col_offset, begins[end_line] + node.end_col_offset
            text = " ".join(ast.unparse(replacement).split()).encode()
            result = source[:start] + text + source[stop:]
            if not isinstance(replacement, ast.stmt | ast.Slice):
                bracketed = source[:start] + b"(" + text + b")" + source[stop:]
                if ast.dump(ast.parse(result)) != ast.dump(ast.parse(bracketed)):
                    result = bracketed
            old, new = (x.splitlines()[line].decode().strip() for x in (source, result))
            yield Mutant(path, line + 1, scope, old, new, result.decode())


def read_list(path: Path) -> dict[tuple[str, str, str], str]:
    """A list of mutants: place, - line, + line and a word about it on four lines, with a blank one between."""
    blocks = [block.splitlines() for block in path.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    return {(place, old, new): word for place, old, new, word in blocks}


class Sandbox:
    """A copy of the tree to run tests in. Each run is a fork of this process, which has imported what they need."""

    def __init__(self, directory: Path, tests: Iterable[str]) -> None:
        for name in ("lab", "tests"):
            shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", directory)
        os.chdir(directory)
        sys.dont_write_bytecode = True  # a stale .pyc is known by its size and second only
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
        hypothesis.settings.load_profile("mutants")
        with redirect_stdout(StringIO()) as output:
            if pytest.main([*OPTIONS, "--collect-only", *tests]) != 0:
                raise SystemExit(output.getvalue())
        for name in list(sys.modules):
            if name.split(".")[0] in ("lab", "tests", "conftest"):
                del sys.modules[name]

    def run(self, tests: Iterable[str], timeout: float) -> str | None:
        """What failed first, None if nothing did."""
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
            log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os._exit(pytest.main([*OPTIONS, "-x", *tests]))
        deadline = time.monotonic() + timeout
        while (done := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return f"not over after {timeout:.0f} s"
            time.sleep(0.01)
        if done[1] == 0:
            return None
        log_lines = Path("log.txt").read_text(errors="replace").splitlines()
        failures = [line.split(" - ")[0] for line in log_lines if line.startswith(("FAILED ", "ERROR "))]
        return failures[-1] if failures else f"exit status {done[1]}"

    def timeout(self, tests: Iterable[str]) -> float:
        """Seconds that a mutant may take; raises SystemExit if the code as it is fails the tests."""
        start = time.monotonic()
        if (failure := self.run(tests, 3600)) is not None:
            raise SystemExit(f"not mutated, and yet: {failure}")
        return 20 + 3 * (time.monotonic() - start)

    def run_mutant(self, mutant: Mutant, tests: Iterable[str], timeout: float) -> str | None:
        path = Path(mutant.path)
        original = path.read_bytes()
        path.write_text(mutant.source, encoding="utf-8")
        try:
            return self.run(tests, timeout)
        finally:
            path.write_bytes(original)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="what to mutate; without any, all of TARGETS")
    parser.add_argument("--only", type=Path, metavar="LIST", help="only the mutants of a list like equivalent.txt")
    parser.add_argument("--tests", nargs="+", metavar="TEST", help="what must kill them, if not all tests of the file")
    args = parser.parse_args(argv)
    tests = {file: tuple(args.tests or TARGETS[file]) for file in args.files or TARGETS}
    equivalent, only = read_list(EQUIVALENT), args.only and read_list(args.only)
    with tempfile.TemporaryDirectory() as directory:
        sandbox = Sandbox(Path(directory), dict.fromkeys(itertools.chain(*tests.values())))
        plan = [mutant for file in tests for mutant in mutants(file, Path(file).read_bytes())]
        listed = {key for key in (equivalent if only is None else only) if key[0].split()[0] in tests}
        unknown = listed - {mutant.key for mutant in plan}
        counts = Counter({"no such mutant": len(unknown)})
        for key in unknown:
            print("no such mutant", *key, sep=": ")
        timeouts = {group: sandbox.timeout(group) for group in set(tests.values())}
        for mutant in plan:
            if only is None or mutant.key in only:
                killer = sandbox.run_mutant(mutant, tests[mutant.path], timeouts[tests[mutant.path]])
                verdict = VERDICTS[killer is None, mutant.key in equivalent]
                counts[verdict] += 1
                print(f"{verdict}: {mutant.path}:{mutant.line}", *mutant.key[1:], f"[{killer}]", sep="  ", flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.items()))
    return 1 if counts["no such mutant"] + counts["SURVIVED"] + counts["KILLED, not equivalent"] else 0


if __name__ == "__main__":
    sys.exit(main())
