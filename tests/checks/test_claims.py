"""Claims of records: true ones hold, each has a number whose change it notices, and `lab verify` says so."""

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lab.checks import claims, suite
from lab.checks.claims import CLAIMS, problems, suite_of
from lab.checks.sizes import Sizes
from lab.checks.suite import make_experiment
from lab.measure.records import Record, dumps, load, save
from lab.measure.roofline import Ceilings
from tests.checks.stream_records import stream_records

Document = dict[str, Any]
Fault = Callable[[Document], object]

torch.set_num_threads(1)
CPU = torch.device("cpu")
ENVIRONMENT = {"device": "here", "torch": "2", "python": "3", "lab": "1", "date": "today", "cuda": None}
SIZES = Sizes(
    prompt=40, chunk_sizes=(16, 32), lengths=(32, 96), bits_prompt=20, bits_chunk_sizes=(1, 7), memory_lengths=(32, 96),
    memory_chunk_sizes=(8, 16), prefill_tokens=(1, 64), decode_batches=(1, 16), cap_prompt=1024, cap_chunk_size=64,
    cap_mib=8, gap_prompt=1024, gap_budgets=(64,), decodes=2, served=4, repeats=2, serving_repeats=1,
)  # fmt: skip


def of(row: int, **columns: Any) -> Fault:
    """Numbers of one row changed: by a function of what is there, or to a value."""

    def plant(document: Document) -> None:
        for name, change in columns.items():
            document["rows"][row][name] = change(document["rows"][row][name]) if callable(change) else change

    return plant


def parameter(**values: Any) -> Fault:
    return lambda document: document["parameters"].update(values)


def more(value: float) -> float:
    return value * 1.03 + 1


def first(change: Callable[[float], float]) -> Callable[[list[float]], list[float]]:
    return lambda values: [change(values[0]), *values[1:]]


def without_a_row(document: Document) -> None:
    del document["rows"][0]


def swapped(*columns: str) -> Fault:
    """Of the first row and the last."""

    def plant(document: Document) -> None:
        a, b = document["rows"][0], document["rows"][-1]
        for name in columns:
            a[name], b[name] = b[name], a[name]

    return plant


def everywhere(column: str, change: Callable[[Any], Any]) -> Fault:
    return lambda document: [row.update({column: change(row[column])}) for row in document["rows"]]


def on_a_gpu(plant: Fault = lambda document: None) -> Fault:
    """With the figures that a GPU adds, and then changed."""

    def plant_there(document: Document) -> None:
        document["environment"]["cuda"] = "12.8"
        for row in document["rows"]:
            if "allocator_bytes" in row:
                row["allocator_bytes"] = row["peak_bytes"] * 1.015
            if "kernels" in row:
                row["kernels"] = row["ops"]
        plant(document)

    return plant_there


def everywhere_in(part: str, **columns: float) -> Fault:
    return lambda document: [row.update(columns) for row in document["rows"] if row["part"] == part]


ANY = {  # of every suite
    "no provenance": (lambda d: d["environment"].pop("torch"), "environment lacks 'torch'"),
    "no word on a GPU": (lambda d: d["environment"].pop("cuda"), "environment lacks 'cuda'"),
    "no seed": (lambda d: d["parameters"].pop("seed"), "parameters lack 'seed'"),
    "another dtype": (parameter(dtype="bfloat16"), "the dtype is bfloat16, and the record is named after float32"),
    "an amount": (of(0, peak_bytes=-1), "row 0: peak_bytes is -1, below 0"),
    "no rows": (lambda d: d["rows"].clear(), "there are no rows"),
    "a unit": (lambda d: d["units"].update(peak_bytes="MiB"), "the unit of 'peak_bytes' is 'MiB', not 'bytes'"),
    "a time": (of(0, min_ms=1e9), "not 0 < min"),
    "a column": (lambda d: [row.pop("chunks") for row in d["rows"]], "a column or a parameter is missing"),
}
FAULTS: dict[str, dict[str, tuple[Fault, str]]] = {
    "prefill": ANY
    | {
        "a row": (without_a_row, "by the parameters; the first to differ is row 0: "),
        "chunks": (of(0, chunks=2), "chunk 16: 2 chunks, not ceil"),
        "KV": (of(1, kv_bytes=more), "bytes of KV were written"),
        "KV error": (of(0, kv_error=first(lambda e: 1.0)), "chunk 16: KV of layer 0: error 1"),
        "logits": (of(0, logits_delta=1.0), "chunk 16: logits: max"),
        "other errors": (of(0, logits_error=0.0, logits_whole_error=0.0), "chunk 16: logits: delta "),
        "below 0": (of(0, kv_error=first(lambda e: -1e-9)), "row 0: kv_error is [-1e-09, "),
        "a row twice": (lambda d: d["rows"].append(d["rows"][-1]), "row 3: 40 in place of none"),
        "match": (of(2, match=False), "chunk 40: the run itself"),
        "peak": (swapped("peak_bytes"), "with the chunk size: peak_bytes falls"),
    },
    "bits": {
        "a row": (without_a_row, "by the parameters; the first to differ is row 0: "),
        "repeat": (of(0, rows_that_differ=1, delta=1e-9), "default, repeat: 1 rows differ from the same run"),
        "size": (of(5, delta=1e-9), "fixed tiles, repeat: 0 rows differ, by at most 1e-09"),
        "tiles": (of(6, rows_that_differ=1, delta=1e-9), "chunks of 1: 1 rows differ in spite of the tiles"),
        "rows": (of(1, rows_that_differ=21), "21 of 20 rows differ"),
        "prompt": (of(1, rows=21), "21 rows, of a prompt of 20 tokens"),
    },
    "memory": {
        "count": (of(0, peak_bytes=more), "the ledger says"),
        "allocator": (of(0, allocator_bytes=7), "the allocator's figure is 7"),
        "agrees": (on_a_gpu(of(0, allocator_bytes=lambda found: found * 1.01)), "more than 2 % apart"),
        "no allocator": (on_a_gpu(of(0, allocator_bytes=None)), "the allocator's figure is None"),
        "ledger": (on_a_gpu(of(0, predicted_bytes=lambda found: found * 1.03)), "the ledger says"),
        "KV": (of(0, kv_bytes=more), "KV bytes differ"),
        "falls": (swapped("peak_bytes"), "peak_bytes falls"),
        "flat": (everywhere("peak_bytes", lambda _: 5), "need as much as the whole"),
        "sizes": (parameter(chunk_sizes=[4, 16]), "the chunk sizes are"),
        "lengths": (parameter(lengths=[32, 64]), "the lengths are"),
    },
    "cost": {
        "a row": (without_a_row, "by the parameters; the first to differ is row 0: "),
        "steps": (of(0, kv_tokens=49), "steps read 49 KV tokens"),
        "launches": (of(-1, ops=10**9), "in ever more steps: ops falls"),
        "no kernels": (on_a_gpu(of(0, kernels=None)), "kernels are counted on a GPU"),
        "more kernels": (on_a_gpu(of(-1, kernels=10**9)), "in ever more steps: kernels falls"),
        "kernels": (of(0, kernels=5), "kernels are counted on a GPU, and on a GPU alone"),
        "flops": (of(0, flops=more), "flops differ between chunk sizes"),
        "no time": (of(0, median_ms=0, min_ms=0), "RuntimeError"),
        "fit": (of(0, fitted_ms=more), "fitted_ms is"),
        "time": (everywhere("median_ms", lambda ms: 2 * ms), "fitted_ms is"),
        "share": (of(0, steps_share=lambda s: s + 0.01), "steps_share is"),
    },
    "roofline": {
        "a row": (without_a_row, "by the parameters; the first to differ is row 0: "),
        "rate": (of(0, flops_per_s=more), "flops_per_s is"),
        "bound": (of(0, bound_ms=more), "bound_ms is"),
        "ceiling": (of(0, ceiling_bytes_per_s=more), "the ceilings differ between rows"),
        "order": (of(0, flops_per_s=1e30), "no faster than the smallest"),
    },
    "cap": {
        "chunks": (of(0, chunks=2), "chunk 64: 2 chunks"),
        "refused": (of(0, refused="no"), "were refused"),
        "taken": (of(1, refused=None), "were not refused"),
        "count": (of(0, peak_bytes=more), "the ledger says"),
        "computed": (of(1, computed_tokens=5), "5 of 1024 tokens were computed"),
        "computed too many": (of(0, computed_tokens=2048), "2048 of 1024 tokens were computed, not refused"),
        "leak": (of(1, leaked_bytes=5), "5 bytes were left behind"),
        "token": (of(0, token=-1), "in float32 they are one"),
        "everywhere": (everywhere("refused", lambda _: "no"), "all were refused, or none"),
    },
    "gap": {
        "a row": (without_a_row, "by the parameters; the first to differ is row 0: "),
        "steps": (of(0, steps_of_the_prompt=1), "the prompt took 1 steps, not 17"),
        "gap ratio": (of(0, gap_ratio=more), "gap_ratio is"),
        "ttft": (of(0, ttft_ms=more), "ttft_ratio is"),
        "no shorter": (of(0, longest_gap_ms=1e9), "no shorter than whole"),
    },
    "serving": {
        "fit": (of(0, fitted_ms=more), "step 0: fitted_ms is"),
        "measured": (everywhere("ms", more), "step 0: fitted_ms is"),
        "error": (of(0, error=more), "step 0: error is"),
        "part": (of(0, part="other"), "a step is of the part 'other', which is none of mix, load"),
        "held out": (everywhere_in("load", error=9.0), "on the load and"),
    },
    "streams-e1-hand-off": {
        "a row": (without_a_row, "the variants are"),
        "value": (of(0, value=0.5), "is called True"),
        "wrong": (of(0, value=0.5, right=False), "the value 0.5 is wrong, which it must not be"),
        "copies": (of(0, device_copies=1), "device_copies is 1, expected 0"),
        "match": (of(0, match=False), "it is not what is expected"),
    },
    "streams-e2-missing-wait": {"runs": (of(0, right_runs=3), "right in 3 of 20 runs, expected none")},
    "streams-e2-sanitizer": {"report": (of(0, reported=False), "the sanitizer reported False")},
    "streams-e0-unit-costs": {"rate": (of(0, device_us=more), "gb_per_s is 4")},
    "streams-e3-price-against-bytes": {"price": (of(0, us=31.0), "the event takes 31.0 us, with a copy 30.0 us")},
    "streams-e4-edge": {"edge": (of(0, two_streams_us=more), "us_per_edge is 2")},
    "streams-e5-overlap": {"speed-up": (of(0, speed_up=more), "speed_up is")},
    "streams-e11-hidden-copies": {
        "bytes": (of(0, device_bytes=0), "1 copies of 0 bytes"),
        "name": (lambda d: d.update(experiment="streams-e99"), "there is no stream experiment"),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """One of each suite, as they are in their files."""
    folder = tmp_path_factory.mktemp("records")
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "SMALL", SIZES)
        patch.setattr("lab.checks.experiments.ceilings", lambda device, dtype: Ceilings(1e11, 1e10))
        patch.setattr("lab.checks.experiments.sys", SimpleNamespace(platform="no Linux"))  # no process of its own
        patch.setattr("lab.checks.calibrate.REQUESTS", 2)
        for name in suite.SUITES:
            record = make_experiment((name, "float32"), "tiny", CPU, 0).record(ENVIRONMENT)
            made[name] = json.loads(save(record, folder).read_text())
        for record in stream_records(patch):
            made[record.experiment] = json.loads(dumps(record))
    return made


@pytest.fixture
def found(records: dict[str, Document], tmp_path: Path) -> Callable[[str, Fault], list[str]]:
    """What the claims of a record say once something in it has been changed."""

    def found(name: str, plant: Fault) -> list[str]:
        document = json.loads(json.dumps(records[name]))
        plant(document)
        path = tmp_path / "record.json"
        path.write_text(json.dumps(document))
        return problems(load(path))

    return found


BUSY = ("the median error of a step", "no faster than the smallest", "no shorter than whole")  # times of two repeats


def test_what_was_measured_holds(records, found) -> None:
    """But for what a busy machine can do to the times of so few repeats."""
    problems_of = {name: found(name, lambda document: None) for name in records}
    problems_of = {name: [p for p in said if not any(busy in p for busy in BUSY)] for name, said in problems_of.items()}
    assert problems_of == {name: [] for name in records}
    assert [found(name, on_a_gpu()) for name in ("memory", "cost")] == [[], []]


@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, faults in FAULTS.items() for fault in faults])
def test_a_changed_number_is_noticed(name: str, fault: str, found) -> None:
    plant, message = FAULTS[name][fault]
    assert [problem for problem in found(name, plant) if message in problem]


@pytest.mark.parametrize("experiment", ["cost-model", "prefill", "vllm-log"])
def test_of_other_records_nothing_is_claimed(experiment: str) -> None:
    """A fitted cost, a table of the benchmark, and a log of somebody else's."""
    record = Record(experiment, {}, [{"n": 1}], {"device": "There"})
    assert suite_of(record) not in CLAIMS and problems(record) == []


def test_a_number_above_every_float_is_a_problem(found) -> None:
    assert "OverflowError" in found("roofline", of(0, flops=10**400))[-1]


def test_every_claim_has_its_fault(found) -> None:
    """No line in `lab.checks.claims` that yields a problem is left without a number that makes it do so."""
    said = [line for name, faults in FAULTS.items() for plant, _ in faults.values() for line in found(name, plant)]
    for path in Path(claims.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Yield) and isinstance(node.value, (ast.JoinedStr, ast.Constant)):
                pattern = re.compile(text_of(node.value))
                assert any(map(pattern.fullmatch, said)), pattern.pattern


def text_of(node: ast.expr) -> str:
    """A pattern of the texts that an f-string makes."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "(.*: )?" + "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)
