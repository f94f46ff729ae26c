"""Threads: every program of the catalogue comes to the model's verdict, on real memory and with real values."""

from random import Random

import pytest

from lab.streams.catalogue import LONG, N
from lab.streams.programs import PROGRAMS, find
from lab.streams.runtime import MAIN, ProgramError, Runtime
from lab.streams.verdict import examine
from lab.streams_torch import threads
from lab.streams_torch.backends import run_on_threads
from lab.streams_torch.threads import ThreadRuntime, Workers
from tests.streams.random_programs import Writer, perform


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_variant_comes_to_the_expected_verdict(name):
    for variant in find(name).variants:
        verdict, trace = run_on_threads(find(name), variant)
        assert verdict.agrees(variant), (variant.name, verdict)
        assert trace.launched and verdict.measures.makespan > 0


def run(program) -> float:
    rt = ThreadRuntime()
    try:
        return program(rt)
    finally:
        rt.close()


def late_reader(rt: Runtime) -> float:
    """A race that a slow reader wins by luck, unless the threads turn it round."""
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    rt.synchronize()
    rt.fill(x, 1, us=60)
    rt.spin(LONG, on="side")
    rt.add(y, x, 1, on="side")
    return rt.mean(y)


def test_an_unordered_pair_is_turned_round(monkeypatch):
    assert run(late_reader) == 1
    monkeypatch.setattr(ThreadRuntime, "turn_round", lambda self, hazard, second: None)
    assert run(late_reader) == 2


def test_threads_that_ignore_waits_give_wrong_numbers_where_nothing_is_missing(monkeypatch):
    perform_item = Workers.perform

    def careless(self, item):
        item.waits_for = None
        perform_item(self, item)

    monkeypatch.setattr(Workers, "perform", careless)
    for name, variant in (("raw", "event"), ("war", "wait"), ("free_early", "home-waits"), ("first_touch", "wait")):
        runs = (run_on_threads(find(name), find(name).variant(variant))[0] for _ in range(5))
        assert not all(verdict.right for verdict in runs), name  # a busy machine may once be late at the right moment


@pytest.mark.parametrize("seed", range(15))
def test_random_programs_end_and_keep_the_order(seed):
    rng = Random(seed)
    rt = perform(Writer(rng, frees=True, views=True, records=True).write(10), ThreadRuntime, rng)
    rt.synchronize()
    rt.close()
    launched = rt.trace.launched
    for i, second in enumerate(launched):
        assert second.item.start is not None
        for first in launched[:i]:
            if first.op.stamp.before(second.op.stamp):
                assert first.item.end <= second.item.start


def test_an_operation_that_fails_is_the_hosts_error():
    rt = ThreadRuntime()
    with pytest.raises(ProgramError, match="don't fit into 1073741824 bytes: use smaller tensors, or the model"):
        rt.full(2**28 + N, 0, "x")
        rt.synchronize()
    rt.close()


def test_threads_that_wait_for_one_another_are_told(monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE", 0.05)
    rt = ThreadRuntime()
    rt.spin(LONG)
    item = rt.last[MAIN]
    rt.workers.goes_after[item].append(item)
    with pytest.raises(ProgramError, match="the threads wait for one another"):
        rt.synchronize()


def test_the_hazards_are_the_models():
    broken = find("free_early").variant("broken")
    ours, models = (examine(broken.run, broken.want, rt).hazards for rt in (ThreadRuntime(), None))
    assert [(h.kind, h.first.line, h.second.line) for h in ours] == [
        (h.kind, h.first.line, h.second.line) for h in models
    ]
