"""Faults planted in the model, one at a time: a check on random programs must notice each."""

from fractions import Fraction
from functools import partial

import pytest

from lab.streams import races
from lab.streams.lifetime import Block, CachingAllocator
from lab.streams.model import ModelRuntime
from lab.streams.order import Order, Stamp
from lab.streams.races import Access, History, Op
from lab.streams.runtime import HOST
from lab.streams.timeline import Timeline
from tests.streams import checks

collide, check_free = races.collide, History.check_free


def record_once(order: Order, event, stream):
    """An event can't be recorded again."""
    order.recorded.setdefault(event, order.here(stream).clock)


def record_own_work_only(order: Order, event, stream):
    """What the stream had itself waited for isn't passed on."""
    clock = order.here(stream).clock
    order.recorded[event] = {actor: n for actor, n in clock.items() if actor in (stream, HOST)}


def wait_for_all_events(order: Order, event, stream):
    """A wait takes in more than its event."""
    for clock in order.recorded.values():
        for actor, n in clock.items():
            order.clocks[stream][actor] = max(order.clocks[stream].get(actor, 0), n)


def synchronize_nothing(order: Order, stream):
    """The host learns nothing from waiting for a stream."""


def place_by_number(stamp: Stamp, clock):
    """A place in a stream's order is known by its last operation alone, whatever the stream had waited for."""
    return clock.get(stamp.actor, 0) >= stamp.n


def same_pointer_only(old: Access, new: Access):
    """Two accesses meet only if they begin at one address."""
    return old.start == new.start and collide(old, new)


def readers_are_safe(old: Access, new: Access):
    """A write after a read is no race."""
    return old.is_write and collide(old, new)


def forget_at_free(history: History, free: Op, tensor, recorded):
    """What a tensor went through is forgotten with it."""
    found = check_free(history, free, tensor, recorded)
    history.accesses = [access for access in history.accesses if access.tensor.storage is not tensor]
    return found


def free_is_always_right(history: History, free: Op, tensor, recorded):
    """No free is ever too early."""
    return check_free(history, free, tensor, {"a", "b", "c", HOST})


def write_wipes_all(history: History, new: Access):
    """A write makes all before it forgotten, whether it comes after it or not."""
    history.accesses = [a for a in history.accesses if not (new.is_write and a.start < new.stop and new.start < a.stop)]
    history.accesses.append(new)


def never_waits(allocator: CachingAllocator):
    """Blocks come back at the next allocation, whatever their events say."""
    for block in allocator.pending:
        allocator.release(block)
    allocator.pending = []


def reclaim_too_much(rt: ModelRuntime, block: Block):
    """With a block that comes back, all uses of it are taken for over, recorded or not."""
    rt.history.accesses = [access for access in rt.history.accesses if access.stop <= block.start]


def edges_cost_nothing(timeline: Timeline, item):
    """A wait lets pass at once."""
    return True


def engines_without_end(timeline: Timeline):
    """Any number of operations run at full speed."""
    return {item.engine: Fraction(1) for item in timeline.running}


SANITIZER = partial(checks.first_race_is_the_sanitizers, ModelRuntime, 300)
REACHABILITY = partial(checks.clocks_are_reachability, ModelRuntime, 100)
EXECUTIONS = partial(checks.race_means_executions_differ, ModelRuntime, 300, frees=False)
REUSE = partial(checks.race_means_executions_differ, ModelRuntime, 300, frees=True)
PAIRS = partial(checks.every_racing_kernel_is_told, ModelRuntime, 100)
RULES = partial(checks.two_rules_suffice, ModelRuntime, 800)
RECLAIMED = partial(checks.reclaimed_only_what_was_recorded, ModelRuntime)
TIMELINE = partial(checks.operations_wait_and_engines_hold, ModelRuntime, 100)

FAULTS = [
    (Order, "record", record_once, (SANITIZER, REACHABILITY)),
    (Order, "record", record_own_work_only, (SANITIZER, REACHABILITY)),
    (Order, "wait", wait_for_all_events, (SANITIZER, REACHABILITY)),
    (Order, "synchronize_stream", synchronize_nothing, (SANITIZER, REACHABILITY)),
    (Stamp, "known_to", place_by_number, (RULES,)),
    (races, "collide", same_pointer_only, (EXECUTIONS, PAIRS)),
    (races, "collide", readers_are_safe, (SANITIZER, EXECUTIONS, PAIRS)),
    (History, "check_free", forget_at_free, (REUSE, PAIRS)),
    (History, "check_free", free_is_always_right, (RULES,)),
    (History, "remember", write_wipes_all, (PAIRS,)),
    (CachingAllocator, "poll", never_waits, (RULES,)),
    (ModelRuntime, "reclaim", reclaim_too_much, (RECLAIMED,)),
    (Timeline, "may_start", edges_cost_nothing, (TIMELINE,)),
    (Timeline, "rates", engines_without_end, (TIMELINE,)),
]


@pytest.mark.parametrize(
    ("target", "name", "fault", "noticed_by"), FAULTS, ids=[fault.__name__ for _, _, fault, _ in FAULTS]
)
def test_a_planted_fault_is_noticed(monkeypatch, target, name, fault, noticed_by):
    monkeypatch.setattr(target, name, fault)
    for check in noticed_by:
        with pytest.raises(AssertionError):
            check()
