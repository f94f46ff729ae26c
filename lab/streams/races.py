"""Hazards: two accesses to the same bytes, one of them a write, that nothing orders.

Bytes are physical, so views and memory handed out again need no rule of their own. Allocation and free take part as
accesses of the tensor's home stream: whoever uses a tensor must come after the one, and before the other.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from lab.streams.order import Clock, Stamp
from lab.streams.runtime import Tensor


class Kind(StrEnum):
    READ_AFTER_WRITE = "read-after-write"
    WRITE_AFTER_WRITE = "write-after-write"
    WRITE_AFTER_READ = "write-after-read"
    USE_AFTER_FREE = "use-after-free"  # the bytes have a new owner, and the old one's use isn't over
    FREED_EARLY = "freed-too-early"  # the home stream isn't ordered after a use on another stream
    TOUCHED_EARLY = "touched-too-early"  # used on another stream not ordered after the allocation


@dataclass(frozen=True)
class Line:
    """Where in the program."""

    file: str
    number: int


@dataclass(frozen=True, eq=False)
class Op:
    """One thing that touches memory: a kernel, a copy, a host access, an allocation or a free."""

    label: str
    stamp: Stamp
    line: Line
    is_alloc: bool = False
    is_free: bool = False

    @property
    def stream(self) -> str:
        return self.stamp.actor


@dataclass(frozen=True)
class Access:
    op: Op
    tensor: Tensor
    start: int  # bytes
    stop: int
    is_write: bool


@dataclass(frozen=True)
class Hazard:
    """`second` was enqueued after `first`, and nothing makes it run after: that edge is missing."""

    kind: Kind
    first: Op
    second: Op
    first_tensor: str
    second_tensor: str


class History:
    """The accesses that a later one may still collide with."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []

    def add(self, op: Op, accesses: list[Access]) -> list[Hazard]:
        """Check an operation against all before it, and remember it. A pair of operations is one hazard."""
        found: dict[tuple[Op, Tensor], Hazard] = {}
        for new in accesses:
            old_ones = [old for old in self.accesses if collide(old, new)]
            if any(not old.op.is_alloc and old.tensor.storage is new.tensor.storage for old in old_ones):
                old_ones = [old for old in old_ones if not old.op.is_alloc]  # the same edge would mend both
            for old in old_ones:
                key, hazard = (old.op, new.tensor.storage), hazard_of(old, new)
                found[key] = min(found.get(key, hazard), hazard, key=lambda h: list(Kind).index(h.kind))
        for new in accesses:
            self.remember(new)
        return list(found.values())

    def remember(self, new: Access) -> None:
        """Add an access. What a write covers and comes after can be forgotten: who races with it races with the write.

        An allocation covers nothing: the old owner's use is then still to be told from the new owner's.
        """
        if new.is_write and not new.op.is_alloc:
            self.forget(new.start, new.stop, new.op.stamp.clock, but=new.op)
        self.accesses.append(new)

    def check_free(self, free: Op, tensor: Tensor, recorded: set[str]) -> list[Hazard]:
        """Uses of the tensor that the free doesn't come after, but for streams it was recorded for."""
        mine = [old for old in self.accesses if old.tensor.storage is tensor and old.op.stream not in recorded]
        late = {old.op: old for old in mine if not old.op.stamp.before(free.stamp)}
        self.accesses = [old for old in self.accesses if not (old.tensor is tensor and old.op.is_alloc)]
        return [Hazard(Kind.FREED_EARLY, op, free, old.tensor.name, tensor.name) for op, old in late.items()]

    def forget(self, start: int, stop: int, clock: Clock, but: Op | None = None) -> None:
        """Drop what lies in these bytes and is over according to `clock`."""
        kept: list[Access] = []
        for old in self.accesses:
            if old.op is but or not old.op.stamp.known_to(clock) or old.stop <= start or stop <= old.start:
                kept.append(old)
                continue
            if old.start < start:
                kept.append(replace(old, stop=start))
            if stop < old.stop:
                kept.append(replace(old, start=stop))
        self.accesses = kept


def collide(old: Access, new: Access) -> bool:
    overlap = old.start < new.stop and new.start < old.stop
    return overlap and (old.is_write or new.is_write) and not old.op.stamp.before(new.op.stamp)


def hazard_of(old: Access, new: Access) -> Hazard:
    if old.op.is_alloc:
        kind = Kind.TOUCHED_EARLY
    elif old.tensor.storage is not new.tensor.storage:
        kind = Kind.USE_AFTER_FREE
    elif not new.is_write:
        kind = Kind.READ_AFTER_WRITE
    else:
        kind = Kind.WRITE_AFTER_WRITE if old.is_write else Kind.WRITE_AFTER_READ
    return Hazard(kind, old.op, new.op, old.tensor.name, new.tensor.name)
