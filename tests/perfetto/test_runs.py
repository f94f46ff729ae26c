"""What engine, simulator and stream programs leave is a trace that Perfetto takes, and it says what happened."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.core import CacheConfig, Request, SamplingParams, SchedulerConfig
from lab.core.trace import Trace
from lab.perfetto.run import run_document
from lab.perfetto.streams import streams_document
from lab.perfetto.validate import validate
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate
from lab.streams.model import ModelRuntime
from lab.streams.programs import PROGRAMS
from lab.streams.verdict import examine

GOLDEN = Path(__file__).parents[1] / "golden" / "vllm-0.33.0-schedules.jsonl"


def run(requests, policy="vllm", num_blocks=12, budget=8) -> Trace:
    scheduler = POLICIES[policy](SchedulerConfig(budget, max_num_seqs=4), CacheConfig(num_blocks, block_size=4))
    return simulate(requests, scheduler, LinearCost(step_ms=10, token_ms=0))


def events(document, phase):
    return [event for event in document["traceEvents"] if event["ph"] == phase]


def test_a_request_has_a_slice_for_its_wait_and_for_each_of_its_steps():
    document = run_document(run([Request("a", range(13), SamplingParams(2))]))
    names = {e["tid"]: e["args"]["name"] for e in events(document, "M") if e["name"] == "thread_name" and e["pid"] == 2}
    slices = [e for e in events(document, "X") if names.get(e["tid"]) == "a" and e["pid"] == 2]
    assert [e["name"] for e in slices] == ["queued", "8 tokens", "5 tokens", "1 token"]
    assert [e["ts"] for e in slices] == [0, 0, 10_000, 20_000] and [e["dur"] for e in slices] == [0, *[10_000] * 3]
    assert [e["name"] for e in events(document, "i")] == ["length"]
    assert [e["args"] for e in events(document, "C")][:2] == [{"used": 2}, {"running": 1, "waiting": 0}]


def test_what_a_request_held_is_gone_when_it_ends_and_not_when_the_next_step_begins():
    document = run_document(run([Request("a", range(13), SamplingParams(2)), Request("b", [1], arrival=9)]))
    counters = [(e["ts"], *e["args"].values()) for e in events(document, "C")]
    assert counters[4:8] == [(20_000, 4), (20_000, 1, 0), (30_000, 0), (30_000, 0, 0)]
    assert counters[8][0] == 9e6 and counters[-2:] == [(counters[-1][0], 0), (counters[-1][0], 0, 0)]


def test_no_track_has_the_number_of_its_process():
    """Perfetto takes such a thread for the main one and shows it before the others."""
    document = run_document(run([Request(name, range(8), SamplingParams(2)) for name in "abcd"]))
    tracks = [(e["pid"], e["tid"]) for e in events(document, "M") if e["name"] == "thread_name"]
    assert len(set(tracks)) == 5 and all(pid != tid for pid, tid in tracks)


def test_every_preemption_is_a_moment_of_its_request():
    trace = run([Request(name, range(8), SamplingParams(16)) for name in "abcd"])
    count = sum(len(step.preempted) for step in trace.steps)
    assert count and sum(e["name"] == "preempted" for e in events(run_document(trace), "i")) == count


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20), st.floats(0, 0.2)), min_size=1, max_size=8),
    st.sampled_from(sorted(POLICIES)),
)
def test_any_run_of_any_policy_is_a_trace_that_perfetto_takes(shapes, policy):
    shapes = sorted(shapes, key=lambda shape: shape[2])
    requests = [Request(f"r{i}", range(p), SamplingParams(m), arrival=at) for i, (p, m, at) in enumerate(shapes)]
    trace = run(requests, policy)
    contents = validate(json.loads(json.dumps(run_document(trace))))
    assert contents.counters == ("KV blocks", "requests")
    used = [e["args"]["used"] for e in events(run_document(trace), "C") if e["name"] == "KV blocks"]
    assert all(0 <= blocks <= 12 for blocks in used) and used[-1] == 0
    assert contents.end == pytest.approx(max(step.end for step in trace.steps) * 1e6, abs=1e-3)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_stream_program_is_a_trace_that_perfetto_takes(program):
    runs = []
    for variant in program.variants:
        runtime = ModelRuntime()
        verdict = examine(variant.run, variant.want, runtime)
        runs.append((variant.name, runtime.trace))
        races = [e for e in events(streams_document(runs[-1:]), "i")]
        assert len(races) == len(verdict.hazards)
    document = streams_document(runs)
    contents = validate(json.loads(json.dumps(document)))
    through = max(trace.through for _, trace in runs)
    assert contents.end >= float(through - Fraction(1, 1000))
    assert {e["args"]["name"] for e in events(document, "M") if e["name"] == "process_name"} == {n for n, _ in runs}
    held = [e["args"]["bytes"] for e in events(document, "C")]
    assert all(n >= 0 for n in held)


def test_commands_write_it_and_lab_trace_says_what_is_in_it(lab, tmp_path):
    load = tmp_path / "load.jsonl"
    load.write_text(GOLDEN.read_text().splitlines()[0])
    runs = {
        "simulated": ["simulate", str(load)],
        "engine": ["simulate", str(load), "--executor", "torch"],
        "generate": ["generate", "one two", "--max-tokens", "3"],
        "streams": ["streams", "handoff"],
    }
    for name, argv in runs.items():
        out = tmp_path / f"{name}.json"
        status, _, err = lab(*argv, "--trace", str(out))
        assert (status, out.exists()) == (0, True), err
        status, text, _ = lab("trace", str(out), "--json")
        said = json.loads(text.splitlines()[-1])
        assert status == 0 and said["kinds"]["slices"] > 0 and said["tracks"] >= 2
