"""Every legal execution: how many there are, and that a race is where their results differ."""

from functools import partial

import pytest

from lab.streams.executions import MAX_KERNELS, executions
from lab.streams.programs import find
from lab.streams.runtime import ProgramError
from lab.streams.verdict import examine


def four(rt, ready, done):
    """x = 1 and x = 5 on one stream; on the other the sum of what x is, read twice."""
    x, first, y = (rt.full(256, 0, name) for name in ("x", "first", "y"))
    with rt.measured():
        rt.fill(x, 1)
        if ready:
            rt.wait_stream("main", on="side")
        rt.add(first, x, 0, on="side")
        rt.add(y, first, x, on="side")
        if done:
            rt.wait_stream("side", on="main")
        rt.fill(x, 5)
    return rt.mean(y)


@pytest.mark.parametrize(
    ("ready", "done", "values"),
    [(False, False, [0, 1, 2, 5, 6, 10]), (True, False, [2, 6, 10]), (False, True, [0, 1, 2]), (True, True, [2])],
)
def test_each_wait_leaves_fewer_orders(ready, done, values):
    found = executions(partial(four, ready=ready, done=done))
    assert sorted(execution.value for execution in found) == values
    assert len({execution.order for execution in found}) == len(values)


@pytest.mark.parametrize("name", ["raw", "war", "copy_no_help", "views", "last_event", "free_early", "wait_or_record"])
def test_results_differ_exactly_where_the_model_sees_a_hazard(name):
    for variant in find(name).variants:
        values = {execution.value for execution in executions(variant.run)}
        verdict = examine(variant.run)
        assert verdict.value in values
        assert (len(values) > 1) == bool(verdict.kinds), variant.name


def test_what_can_not_be_explored_is_refused():
    def host(rt):
        x = rt.full(256, 0, "x", place="pinned")
        with rt.measured():
            rt.write(x, 1)
        return rt.mean(rt.full(256, 0, "y"))

    def long(rt):
        x = rt.full(256, 0, "x")
        with rt.measured():
            for _ in range(MAX_KERNELS + 1):
                rt.fill(x, 1)
        return rt.mean(x)

    for program, word in ((host, "`measured"), (long, "too many"), (lambda rt: 0.0, "mean"), (copied, "host's")):
        with pytest.raises(ProgramError, match=word):
            executions(program)


def copied(rt):
    x, ids = rt.empty(256, "x"), rt.full(256, 1, "ids", place="pinned")
    with rt.measured():
        rt.copy(x, ids)
    return rt.mean(x)
