"""The allocator's rules, one by one; sizes and limits are those of PyTorch's CUDACachingAllocator.cpp."""

from random import Random

import pytest

from lab.streams.lifetime import CachingAllocator
from lab.streams.runtime import Event, Tensor

MIB = 2**20


class Device:
    """An allocator whose events are complete when the test says so."""

    def __init__(self) -> None:
        self.done: set[Event] = set()
        self.reclaimed: list[int] = []
        self.allocator = CachingAllocator(
            Event, self.done.__contains__, lambda block: self.reclaimed.append(block.start)
        )

    def malloc(self, nbytes: int, stream: str = "main") -> tuple[Tensor, int, bool]:
        x = Tensor("x", nbytes // 4)
        is_new = self.allocator.malloc(x, stream)
        return x, self.allocator.span(x)[0], is_new


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.mark.parametrize(
    ("nbytes", "segment"),
    [(4, 2 * MIB), (MIB, 2 * MIB), (MIB + 4, 20 * MIB), (10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB),
     (11 * MIB, 12 * MIB), (64 * MIB, 64 * MIB)],
)  # fmt: skip
def test_segments(device, nbytes, segment):
    assert device.malloc(nbytes)[2]
    assert device.allocator.reserved_bytes == segment


def test_blocks_are_rounded_to_512_and_split(device):
    places = [device.malloc(nbytes)[1] for nbytes in (4, 512, 516, 4)]
    assert places == [0, 512, 1024, 2048]
    assert device.allocator.reserved_bytes == 2 * MIB


def test_a_large_block_is_split_only_if_more_than_a_mebibyte_is_left(device):
    x, _, _ = device.malloc(20 * MIB)
    device.allocator.free(x)
    device.malloc(19 * MIB)
    assert device.malloc(2 * MIB)[2]  # the last mebibyte went with the block
    other = Device()
    x, _, _ = other.malloc(20 * MIB)
    other.allocator.free(x)
    other.malloc(18 * MIB)
    assert not other.malloc(2 * MIB)[2]


def test_freed_bytes_serve_the_same_stream_at_once_and_no_other(device):
    x, place, _ = device.malloc(4096)
    device.allocator.free(x)
    assert device.allocator.retained_bytes == 0
    _, elsewhere, is_new = device.malloc(4096, "side")
    assert is_new and elsewhere != place
    _, again, is_new = device.malloc(4096)
    assert again == place and not is_new


def test_the_best_fit_is_taken_and_neighbours_become_one(device):
    small, wall, large, end = (device.malloc(nbytes) for nbytes in (512, 512, 2048, MIB - 512))
    device.allocator.free(large[0])
    device.allocator.free(small[0])
    assert device.malloc(512)[1] == small[1]  # not a piece of the large one
    device.allocator.free(wall[0])  # now one with the large one behind it
    assert device.malloc(2560)[1] == wall[1]


def test_blocks_of_two_segments_do_not_become_one(device):
    first, second = device.malloc(10 * MIB), device.malloc(10 * MIB)
    for x, _, _ in (first, second):
        device.allocator.free(x)
    assert device.malloc(20 * MIB)[2]


def test_a_recorded_block_waits_for_the_events_of_its_free_and_is_looked_at_when_something_is_allocated(device):
    x, place, _ = device.malloc(MIB)
    for stream in ("side", "copy", "side", "main"):  # its own needs no event
        device.allocator.record_stream(x.view(3, 5), stream)
    device.allocator.free(x)
    (block,) = device.allocator.pending
    assert [event.name for event in block.events] == ["copy", "side"]
    assert device.allocator.retained_bytes == MIB
    device.done.add(block.events[0])
    assert device.malloc(MIB)[1] != place
    device.done.add(block.events[1])
    assert device.allocator.retained_bytes == MIB and not device.reclaimed  # nobody has looked
    assert device.malloc(MIB)[1] == place
    assert device.reclaimed == [place] and device.allocator.retained_bytes == 0


def test_no_byte_has_two_owners_and_none_is_lost():
    rng, device = Random(0), Device()
    allocator, live = device.allocator, []
    for _ in range(3000):
        if live and rng.random() < 0.5:
            x = live.pop(rng.randrange(len(live)))
            if rng.random() < 0.3:
                allocator.record_stream(x, "other")
            allocator.free(x)
        else:
            live.append(device.malloc(rng.choice((4, 700, 5000, MIB, 3 * MIB, 12 * MIB)), rng.choice("ab"))[0])
        device.done |= {event for block in allocator.pending for event in block.events if rng.random() < 0.3}
        blocks = sorted([*allocator.live.values(), *allocator.free_blocks, *allocator.pending], key=lambda b: b.start)
        assert blocks[0].start == 0 and blocks[-1].stop == allocator.reserved_bytes
        assert all(a.stop == b.start for a, b in zip(blocks, blocks[1:]))
