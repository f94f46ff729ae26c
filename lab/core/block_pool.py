"""Which KV blocks are whose."""

from lab.core.config import CacheConfig


class BlockPool:
    """The KV blocks of one cache: each is free, or stands in the block table of exactly one request.

    The last blocks freed are the first reused, in the order in which they were held, so that a new request tends to get
    consecutive blocks: attention then reads a view of the cache in place of a gather.
    """

    def __init__(self, config: CacheConfig) -> None:
        self.config = config
        self._free = list(range(config.num_blocks - 1, -1, -1))
        self._tables: dict[str, list[int]] = {}
        self.num_slots: dict[str, int] = {}  # tokens that each table holds

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_used(self) -> int:
        return self.config.num_blocks - len(self._free)

    def table(self, request_id: str) -> list[int]:
        """The blocks of a request, in token order; empty if it holds none."""
        return self._tables.get(request_id, [])

    def num_missing(self, request_id: str, num_tokens: int) -> int:
        """Blocks that the request lacks to hold `num_tokens` tokens."""
        num_needed = -(-num_tokens // self.config.block_size)
        return max(0, num_needed - len(self.table(request_id)))

    def grow(self, request_id: str, num_tokens: int) -> bool:
        """Give the request the blocks it lacks for `num_tokens` tokens; False, and none, if too few are free."""
        missing = self.num_missing(request_id, num_tokens)
        if missing > len(self._free):
            return False
        if missing:
            table = self._tables.setdefault(request_id, [])
            table.extend(self._free[: -missing - 1 : -1])
            del self._free[-missing:]
            self.num_slots[request_id] = len(table) * self.config.block_size
        return True

    def release(self, request_id: str) -> None:
        """Take back all blocks of the request. Raises KeyError if it holds none: nothing is freed twice."""
        self._free.extend(reversed(self._tables.pop(request_id)))
        del self.num_slots[request_id]
