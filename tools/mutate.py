"""Mutation tests: change one thing in the code, and a test must fail. `make mutants` takes hours on one core.

The operators are fixed: `tools/mutants.py`. A mutant that no test can kill since nothing one may rely on has changed
stands with its reason in `tests/mutants/equivalent.txt`; any other survivor is a test that is missing.
"""

import argparse
import itertools
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import hypothesis
import pytest

from tools.mutants import Mutant, mutants, read_list

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
    **{f"lab/core/{name}.py": CORE for name in ("scheduler", "plan", "waiting_queue", "block_pool")},
    **{f"lab/core/{name}.py": CORE for name in ("request", "config")},
    **{f"lab/model/{name}.py": MODEL for name in ("batch", "kv_store", "rope", "attention", "sdpa", "varlen")},
    **{f"lab/engine/{name}.py": ENGINE for name in ("executor", "sampling")},
}


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
