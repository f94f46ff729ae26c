"""Calls in turn, and tables that are measured in a peer's own environment. Standard library only, as that may have none
of ours."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from bench.table import ROOT, Row, Run, Skipped

T = TypeVar("T")
SETTLE_S = 0.4  # libiomp spins for 0.2 s by default (KMP_BLOCKTIME)


def in_turn(calls: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """One call of each in turn, so that whatever else the machine does hits them all; the first round is dropped."""
    rounds = [{name: settled(call) for name, call in calls.items()} for _ in range(1 + repeats)]
    return {name: [results[name] for results in rounds[1:]] for name in calls}


def settled(call: Callable[[], T]) -> T:
    """Call when the threads of whoever came before sleep: they spin for a while, at the cost of the next."""
    time.sleep(SETTLE_S)
    return call()


def rates(who: str, amount: float, seconds: Sequence[float]) -> dict[str, float]:
    """Columns: so much in a second, by the median of the times, and of the slowest and the fastest."""
    slow, middle, fast = max(seconds), statistics.median(seconds), min(seconds)
    return {f"{who}_per_s": amount / middle, f"{who}_min_per_s": amount / slow, f"{who}_max_per_s": amount / fast}


def measured_in(python: Path, module: str, run: Run, **more: str) -> Iterator[Row]:
    """The rows that `python -m MODULE ASKED` prints there, a JSON object a line; `answer` is its other side.

    Raises Skipped with the last thing it said if it doesn't end well.
    """
    asked = {"repeats": run.repeats, "quick": run.quick, **more}
    command = [str(python), "-m", module, json.dumps(asked)]
    child = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, cwd=ROOT, env=child, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("{"):
                continue  # what the peer has to say
            row = json.loads(line)
            if "left_out" in row:
                run.left_out.append(row["left_out"])
            else:
                yield row
        if process.wait():
            said.seek(0)
            raise Skipped(f"{module}: {(said.readlines() or ['nothing said'])[-1].strip():.300}")


def answer(rows: Callable[..., Iterable[Row]]) -> int:
    """What such a module does when it is run: its rows, measured `repeats` times, tiny ones if asked for `quick`."""
    for row in rows(**json.loads(sys.argv[1])):
        print(json.dumps(row), flush=True)
    return 0
