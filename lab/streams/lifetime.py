"""LIFETIME: a caching allocator with the rules of PyTorch's (c10/cuda/CUDACachingAllocator.cpp, read at 2.13).

Pure arithmetic on addresses, so that any backend can lay it over memory of its own. One pool per stream, a second one
for large blocks, best fit, blocks split and merged. A freed block goes back to its pool at once, unless other streams
were recorded for it: then an event is recorded on each when it is freed, and the block waits for them. They are looked
at when something is allocated, and at no other time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lab.streams.runtime import ITEM_BYTES, Event, ProgramError, Tensor

MIN_BLOCK = 512
SMALL_SIZE = 2**20  # up to here a block comes from the small pool
SMALL_SEGMENT = 2 * 2**20
LARGE_SEGMENT = 20 * 2**20
MIN_LARGE = 10 * 2**20  # from here on a segment holds what was asked for, in whole units of:
LARGE_UNIT = 2 * 2**20


@dataclass(eq=False)
class Block:
    pool: tuple[str, bool]  # stream (or kind of host memory), and whether it is the small pool
    start: int
    size: int
    segment: int  # address of the cudaMalloc that it is part of
    events: list[Event] = field(default_factory=list)  # recorded at free, not seen complete yet

    @property
    def stop(self) -> int:
        return self.start + self.size


class CachingAllocator:
    """Addresses for tensors, from `base` on.

    `record` enqueues an event on a stream, `is_done` asks whether it is complete, and `reclaimed` is told of a block
    whose events were all seen complete.
    """

    def __init__(
        self,
        record: Callable[[str], Event],
        is_done: Callable[[Event], bool],
        reclaimed: Callable[[Block], None],
        base: int = 0,
    ) -> None:
        self.record = record
        self.is_done = is_done
        self.reclaimed = reclaimed
        self.live: dict[Tensor, Block] = {}
        self.used_on: dict[Tensor, set[str]] = {}  # streams recorded by record_stream
        self.free_blocks: list[Block] = []
        self.pending: list[Block] = []  # freed, with events outstanding
        self.reserved_bytes = 0
        self.top = base

    def malloc(self, tensor: Tensor, pool: str) -> bool:
        """Find a block for a tensor; return whether a new segment had to be made for it (a cudaMalloc)."""
        self.poll()
        size = -(-tensor.nbytes // MIN_BLOCK) * MIN_BLOCK
        key = (pool, size <= SMALL_SIZE)
        fitting = [block for block in self.free_blocks if block.pool == key and block.size >= size]
        if fitting:
            block = min(fitting, key=lambda block: (block.size, block.start))
            self.free_blocks.remove(block)
        else:
            block = self.new_segment(key, size)
        self.split(block, size)
        self.live[tensor] = block
        self.used_on[tensor] = set()
        return not fitting

    def free(self, tensor: Tensor) -> None:
        """Give the block back, or let it wait for an event on every stream recorded for it."""
        block = self.block(tensor)
        del self.live[tensor]
        block.events = [self.record(stream) for stream in sorted(self.used_on.pop(tensor))]
        if block.events:
            self.pending.append(block)
        else:
            self.release(block)

    def poll(self) -> None:
        """Take back the blocks whose events are complete by now."""
        for block in list(self.pending):
            if all(self.is_done(event) for event in block.events):
                self.pending.remove(block)
                self.reclaimed(block)
                self.release(block)

    def record_stream(self, tensor: Tensor, stream: str) -> None:
        """Note a use on a stream; a use on the block's own needs no note. Raises ProgramError after the free."""
        block = self.block(tensor)
        if stream != block.pool[0]:
            self.used_on[tensor.storage].add(stream)

    def block(self, tensor: Tensor) -> Block:
        if tensor.storage not in self.live:
            raise ProgramError(f"{tensor.name} is used after {tensor.storage.name} was freed: free it later")
        return self.live[tensor.storage]

    def span(self, tensor: Tensor) -> tuple[int, int]:
        """First and one past the last byte of a tensor. Raises ProgramError after the free."""
        start = self.block(tensor).start + tensor.start * ITEM_BYTES
        return start, start + tensor.nbytes

    @property
    def retained_bytes(self) -> int:
        return sum(block.size for block in self.pending)

    def new_segment(self, key: tuple[str, bool], size: int) -> Block:
        if key[1]:
            total = SMALL_SEGMENT
        else:
            total = LARGE_SEGMENT if size < MIN_LARGE else -(-size // LARGE_UNIT) * LARGE_UNIT
        block = Block(key, self.top, total, self.top)
        self.top += total
        self.reserved_bytes += total
        return block

    def split(self, block: Block, size: int) -> None:
        """Cut off what isn't needed, if it is enough to be of use: 512 B in the small pool, over 1 MiB in the large."""
        rest = block.size - size
        if rest >= MIN_BLOCK if block.pool[1] else rest > SMALL_SIZE:
            self.free_blocks.append(Block(block.pool, block.start + size, rest, block.segment))
            block.size = size

    def release(self, block: Block) -> None:
        """Put a block into its pool, as one with its free neighbours of the same segment."""
        for other in list(self.neighbours(block)):
            self.free_blocks.remove(other)
            block.start, block.size = min(block.start, other.start), block.size + other.size
        block.events = []
        self.free_blocks.append(block)

    def neighbours(self, block: Block) -> Iterator[Block]:
        for other in self.free_blocks:
            if other.segment == block.segment and (other.stop == block.start or other.start == block.stop):
                yield other
