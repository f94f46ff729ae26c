"""Each way in which a trace can be wrong is found, and named by its event."""

import copy
import json
import math
from pathlib import Path

import pytest

from lab.core.errors import ConfigError
from lab.perfetto.events import SECOND, Process, document
from lab.perfetto.validate import validate

LOAD = Path(__file__).parents[2] / "data/loads/full-pool.jsonl"


@pytest.fixture
def trace():
    process = Process(1, "p", unit=1)
    process.slice("t", "outer", 0, 30)
    process.slice("t", "inner", 10, 20)
    process.instant("t", "now", 5)
    process.counter("bytes", 0, {"held": 3})
    return document(process)


PROCESS, TRACK, ORDER, OUTER, INNER, MOMENT, COUNTER = range(7)  # places of the events: the names come first
FAULTS = {
    "no phase": (INNER, {"ph": "Z"}),
    "a phase that is a list": (INNER, {"ph": []}),
    "a name that is no text": (INNER, {"name": 7}),
    "args that are no object": (INNER, {"args": [1]}),
    "a pid that is no number": (MOMENT, {"pid": "1"}),
    "no tid": (INNER, {"tid": None}),
    "a pid of more than 32 bits": (MOMENT, {"pid": 2**32}),
    "a tid below 0": (INNER, {"tid": -1}),
    "a process whose name is no text": (PROCESS, {"args": {"name": 1}}),
    "a track without its name": (TRACK, {"args": {}}),
    "an order that is no number": (ORDER, {"args": {"sort_index": "1"}}),
    "a scope that there is not": (MOMENT, {"s": "x"}),
    "a time before 0": (MOMENT, {"ts": -1}),
    "a time that is no number": (INNER, {"ts": "0"}),
    "an endless slice": (INNER, {"dur": math.inf}),
    "a slice longer than Perfetto counts": (INNER, {"dur": 1e308}),
    "a time above every float": (MOMENT, {"ts": 10**400}),
    "a counter without a value": (COUNTER, {"args": {}}),
    "a counter of words": (COUNTER, {"args": {"held": "much"}}),
    "a counter above every float": (COUNTER, {"args": {"held": 10**400}}),
    "a track without a name": (MOMENT, {"tid": 9}),
    "slices that overlap in part": (INNER, {"dur": 0.021}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_by_its_event(trace, fault):
    validate(trace)
    index, change = FAULTS[fault]
    broken = copy.deepcopy(trace)
    broken["traceEvents"][index] |= change
    with pytest.raises(ConfigError, match=f"^event {index}: "):
        validate(broken)


def test_neighbours_may_touch_and_a_slice_may_fill_another(trace):
    for start, dur in ((0.03, 0.01), (0, 0.03), (0, 0)):
        trace["traceEvents"][INNER] |= {"ts": start, "dur": dur}
        validate(trace)


def test_what_is_in_a_trace(trace):
    contents = validate(trace)
    assert contents.kinds == {"names": 3, "slices": 2, "moments": 1, "counter values": 1}
    assert (contents.tracks, contents.counters, contents.start, contents.end) == (1, ("bytes",), 0, 0.03)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": []}', '{"traceEvents": [3]}', "[" * 100_000, "\xff"])
def test_what_is_no_trace_is_refused_in_one_line(lab, tmp_path, text):
    path = tmp_path / "t.json"
    path.write_bytes(text.encode("latin-1"))
    status, _, err = lab("trace", str(path))
    assert status == 2 and len(err.splitlines()) == 1 and str(path) in err


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("3", "NaN", 1).encode(),
        lambda text: text.replace("3", "-Infinity", 1).encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-8-sig"),  # Perfetto knows JSON by its first character
    ],
)
def test_json_that_only_python_reads_is_refused(lab, tmp_path, trace, change):
    path, text = tmp_path / "t.json", json.dumps(trace)
    path.write_text(text)
    assert lab("trace", str(path))[0] == 0
    path.write_bytes(change('{"otherData": 3, ' + text[1:]))
    status, _, err = lab("trace", str(path))
    assert status == 2 and "is no JSON" in err and len(err.splitlines()) == 1


def test_a_file_that_is_not_there(lab, tmp_path):
    status, _, err = lab("trace", str(tmp_path / "none.json"))
    assert status == 2 and "No such file" in err


def test_rounding_lets_no_neighbours_overlap():
    process = Process(1, "p", SECOND)
    edges = [i / 3 for i in range(1000)]
    for start, end in zip(edges, edges[1:]):
        process.slice("t", "s", start, end)
    validate(json.loads(json.dumps(document(process))))


@pytest.mark.parametrize("argv", [["generate", "one"], ["simulate", str(LOAD)], ["streams", "raw"]])
def test_where_no_trace_can_be_written_nothing_is_run(lab, argv):
    status, out, err = lab(*argv, "--trace", "/nowhere/out.json")
    assert (status, out) == (2, "") and err.startswith("error: cannot write /nowhere/out.json: ")
