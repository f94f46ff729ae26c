"""`check`: what it says of PyTorch code, broken and mended, and what it refuses to guess."""

from collections import defaultdict
from functools import partial
from threading import Thread
from unittest.mock import patch

import pytest
import torch

from lab.streams.programs import PROGRAMS, find
from lab.streams.races import Kind
from lab.streams_torch import cuda
from lab.streams_torch.check import check
from lab.streams_torch.check.operands import aten, extents, operands
from lab.streams_torch.check.source import text
from lab.streams_torch.check.tracer import Tracer
from tests.streams_torch import snippets

RAW, WAR, WAW = Kind.READ_AFTER_WRITE, Kind.WRITE_AFTER_READ, Kind.WRITE_AFTER_WRITE
FREED, UAF, TOUCHED = Kind.FREED_EARLY, Kind.USE_AFTER_FREE, Kind.TOUCHED_EARLY

# (snippet, its argument, (kind, line of the first operation, line of the second) for each hazard)
BROKEN = [
    (snippets.side_sum, False, [
        (RAW, 'a = torch.empty((100, 100), device="cuda").normal_(0.0, 1.0)', "torch.sum(a)"),
        (FREED, "torch.sum(a)", "torch.sum(a)"),
    ]),
    (snippets.event_handoff, True, [(RAW, "x.add_(1)", "x * 2")]),
    (snippets.overwrite, False, [(WAR, "saved.copy_(block, non_blocking=True)", "block.zero_()")]),
    (snippets.freed, "", [
        (FREED, "y = x * 2", "del x"),
        (UAF, "y = x * 2", 'z = torch.zeros(2**20, device="cuda")'),
    ]),
    (snippets.branch, False, [
        (FREED, "out = scores @ scores", "out = attention()"),
        (UAF, "out = scores @ scores", 'torch.zeros(512, 512, device="cuda")'),
    ]),
    (snippets.first_touch, False, [
        (UAF, 'torch.ones(2**20, device="cuda").sum()', "x.fill_(7)"),
        (UAF, 'torch.ones(2**20, device="cuda").sum()', "x.fill_(7)"),
        (TOUCHED, 'x = torch.empty(2**20, device="cuda")', "x.fill_(7)"),
    ]),
    (snippets.halves, True, [(WAW, "kv[:32].add_(1)", "kv[31 if overlap else 32 :] = 2")]),
    (snippets.columns, True, [(RAW, "kv[:, 3].add_(1)", "kv[..., 3 if same else 4].mul_(2)")]),
    (snippets.read_early, "", [
        (RAW, 'out = x.to("cpu", non_blocking=how != "blocking")', "return out.sum()"),
    ]),
    (snippets.staging, "pinned", [(WAR, "x.copy_(ids, non_blocking=True)", "ids.fill_(step)")]),
]  # fmt: skip

MENDED = [
    (snippets.side_sum, True),
    (snippets.overwrite, True),
    (snippets.freed, "home waits"),
    (snippets.freed, "record view"),
    (snippets.branch, True),
    (snippets.first_touch, True),
    (snippets.halves, False),
    (snippets.columns, False),
    (snippets.read_early, "event"),
    (snippets.read_early, "blocking"),
    (snippets.staging, "pageable"),
]


def name_of(case: object) -> str | None:
    return getattr(case, "__name__", None)


@pytest.mark.parametrize(("snippet", "argument", "expected"), BROKEN, ids=name_of)
def test_a_missing_edge_comes_back_with_its_two_lines(snippet, argument, expected):
    report = check(partial(snippet, argument))
    found = [(hazard.kind, text(hazard.first.line), text(hazard.second.line)) for hazard in report.hazards]
    assert found == expected and report.stopped is None and not report.ok
    assert str(report).count("missing edge: an event recorded on") == len(expected)
    assert all(line in str(report) for _, first, second in expected for line in (first, second))


@pytest.mark.parametrize(("snippet", "argument"), MENDED, ids=name_of)
def test_mended_nothing_is_found(snippet, argument):
    report = check(partial(snippet, argument))
    assert report.ok, str(report)
    assert str(report) == "no hazard"


def test_copies_are_those_that_a_profile_calls_so():
    report = check(snippets.hidden_copies)
    assert report.ok and (report.device_copies, report.device_bytes) == (2, 64 * 64 * 4 + 2 * 64 * 4)


@pytest.mark.parametrize(
    ("snippet", "message"),
    [
        (snippets.looks_at_a_value, "the value of Tensor.item can't be followed"),
        (snippets.compares_a_value, "the value of Tensor.item can't be followed"),
        (snippets.polls, "Event.query can't be followed"),
        (snippets.captures, "torch.cuda.CUDAGraph can't be followed"),
        (snippets.shape_of_values, "nonzero()` can't be followed"),
        (snippets.another_device, "device cuda:1 can't be followed"),
        (snippets.moves_a_module, 'can\'t be followed without a GPU; make the module with device="cuda"'),
        (snippets.uses_a_tensor_from_outside, "make its tensors in what is checked"),
        (snippets.asks_the_accelerator, "can't be followed without a GPU; use torch.cuda"),
        (snippets.starts_a_thread, "a thread can't be followed"),
    ],
)
def test_what_cannot_be_followed_is_named_with_its_line(snippet, message):
    report = check(snippet)
    first = snippet.__code__.co_firstlineno
    assert report.stopped is not None and message in report.stopped and not report.ok
    assert first < int(report.stopped.split()[1].rstrip(":")) < first + 6
    assert "stopped: line " in str(report)


def test_a_value_may_be_printed(capsys):
    assert check(snippets.prints_a_value).ok
    assert capsys.readouterr().out == "? ?\n"


def test_mistakes_of_the_code_itself_come_as_they_are():
    with pytest.raises(RuntimeError, match="shape"):
        check(snippets.own_mistake)


def test_everything_is_put_back():
    before = (torch.cuda.Stream, torch.cuda.is_available, torch.Tensor.copy_, snippets.Stream, Thread.start)
    check(snippets.looks_at_a_value)
    with pytest.raises(RuntimeError):
        check(snippets.own_mistake)
    assert before == (torch.cuda.Stream, torch.cuda.is_available, torch.Tensor.copy_, snippets.Stream, Thread.start)
    assert torch.ones(3)[1:].sum().item() == 2


# -- The catalogue, as calls of PyTorch --------------------------------------------------------------------------------


def on_cuda(run) -> None:
    """A program of the catalogue on the CUDA runtime, whose questions about the allocator have no answer here."""
    zero = {
        "empty_cache": None,
        "reset_peak_memory_stats": None,
        "memory_reserved": 0,
        "memory_stats": defaultdict(int),
    }
    with (
        patch.multiple(torch.cuda, **{name: lambda value=value: value for name, value in zero.items()}),
        patch.multiple(cuda, cycles_per_us=lambda: 1.0, warm_up=lambda: None),
    ):
        run(cuda.CudaRuntime(profile=False))


NOT_FOLLOWED = {("d2h_read", "query"), ("launch_bound", "graph"), *(("graph", v.name) for v in find("graph").variants)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_catalogue_on_torch_cuda_has_the_hazards_and_copies_of_the_model(name):
    for variant in find(name).variants:
        report = check(partial(on_cuda, variant.run))
        assert (report.stopped is not None) == ((name, variant.name) in NOT_FOLLOWED), report.stopped
        if report.stopped is None:
            assert {hazard.kind for hazard in report.hazards} == variant.hazards, variant.name
            assert (report.device_copies, report.device_bytes) == (variant.device_copies, variant.device_bytes)


# -- Planted faults ----------------------------------------------------------------------------------------------------


def test_a_tracer_that_loses_writes_in_place_is_noticed(monkeypatch):
    monkeypatch.setattr(Tracer, "compute", lambda self, func, args, reads, writes: None)
    assert check(partial(snippets.halves, True)).ok


def test_a_tracer_that_never_frees_is_noticed(monkeypatch):
    monkeypatch.setattr(Tracer, "hold", lambda self, x: None)
    assert FREED not in {hazard.kind for hazard in check(partial(snippets.freed, "")).hazards}


def test_an_error_in_a_finalizer_is_not_lost(monkeypatch):
    def broken(self, x):
        raise ZeroDivisionError

    monkeypatch.setattr("lab.streams_torch.check.tracer.TracedRuntime.free", broken)
    with pytest.raises(ZeroDivisionError):
        check(partial(snippets.freed, ""))


def test_operands_by_schema():
    a, b, out = torch.ones(2), torch.ones(2), torch.ones(2)
    add = operands(aten.add.out, (a, b), {"out": out})
    assert add.reads == [a, b] and add.writes[0] is out
    for func, args, reads in (
        (aten.add_.Tensor, (a, b), 2),
        (aten.copy_.default, (a, b), 1),
        (aten.zero_.default, (a,), 0),
    ):
        used = operands(func, args, {})
        assert len(used.reads) == reads and used.writes[0] is a


def test_extents_are_the_bytes_of_a_view():
    x = torch.zeros(4, 6, dtype=torch.float32)
    assert extents(x) == [(0, 96)] and extents(x[1:3]) == [(24, 72)] and extents(x[0, 2:4]) == [(8, 16)]
    assert extents(x[:, 1]) == [(4, 8), (28, 32), (52, 56), (76, 80)]
    assert extents(x[::2, :3]) == [(0, 12), (48, 60)] == extents(x.t()[:3, ::2])
    assert extents(x[:0]) == [] and extents(torch.zeros(1).expand(5)) == [(0, 4)]
    assert extents(torch.zeros(5000, 2)[:, 0]) == [(0, 4999 * 8 + 4)]
