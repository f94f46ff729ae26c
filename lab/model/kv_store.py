"""The paged KV cache: one pool of blocks per layer, allocated once."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lab.core.config import require_at_least
from lab.model.config import ModelConfig

BlockIndex = slice | Tensor  # consecutive blocks, or int64 block ids


def block_index(block_table: Sequence[int], device: torch.device) -> BlockIndex:
    """What indexes a pool to give the table's blocks: a slice (a view, nothing is copied) if they are consecutive."""
    first, n = block_table[0], len(block_table)
    if tuple(block_table) == tuple(range(first, first + n)):
        return slice(first, first + n)
    return torch.tensor(block_table, dtype=torch.int64).to(device, non_blocking=True)


def first_run(block_table: Sequence[int]) -> int:
    """How many blocks of the table are consecutive, from the first on."""
    first = block_table[0]
    return next((i for i, block in enumerate(block_table) if block != first + i), len(block_table))


class KVStore:
    """Keys and values of all layers: `keys[layer]`, `values[layer]`, each
    `[num_blocks, block_size, num_key_value_heads, head_dim]`. Slot s is row s % block_size of block s // block_size.

    Zeroed, not just allocated: a kernel that reads a page to its end, to multiply by 0, must not find NaN there.
    `pin_memory` is for a store in host memory that a GPU copies to and from. `pools` holds all keys and values. Raises
    ConfigError if `num_blocks` or `block_size` is below 1.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_blocks: int,
        block_size: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
        pin_memory: bool = False,
    ) -> None:
        require_at_least("num_blocks", num_blocks, 1)
        require_at_least("block_size", block_size, 1)
        self.num_blocks = num_blocks
        self.block_size = block_size
        shape = (num_blocks, block_size, config.num_key_value_heads, config.head_dim)
        self.pools = [
            torch.zeros(shape, dtype=dtype, device=device, pin_memory=pin_memory)
            for _ in range(2 * config.num_hidden_layers)
        ]
        self.keys, self.values = self.pools[::2], self.pools[1::2]

    def write(self, layer: int, slots: Tensor, k: Tensor, v: Tensor) -> None:
        """Store `k` and `v`, `[T, num_key_value_heads, head_dim]`, at slots `[T]` (int64)."""
        self.keys[layer].flatten(0, 1).index_copy_(0, slots, k)
        self.values[layer].flatten(0, 1).index_copy_(0, slots, v)

    def select(self, layer: int, blocks: BlockIndex, length: int) -> tuple[Tensor, Tensor]:
        """The first `length` keys and values in `blocks`, each `[length, num_key_value_heads, head_dim]`."""
        keys, values = self.keys[layer], self.values[layer]
        if isinstance(blocks, slice):
            keys, values = keys[blocks], values[blocks]
        else:  # copies whole blocks; advanced indexing would go element by element
            keys, values = keys.index_select(0, blocks), values.index_select(0, blocks)
        return keys.flatten(0, 1)[:length], values.flatten(0, 1)[:length]

    def read(self, layer: int, block_table: Sequence[int], length: int) -> tuple[Tensor, Tensor]:
        """`select` by a block table: views of the pool if its blocks are consecutive, else copies."""
        return self.select(layer, block_index(block_table, self.keys[layer].device), length)

    @property
    def nbytes(self) -> int:
        """Bytes allocated, used or not."""
        return sum(pool.nbytes for pool in self.pools)

    @staticmethod
    def bytes_per_token(config: ModelConfig, dtype: torch.dtype) -> int:
        """Bytes of one token's keys and values over all layers."""
        return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * dtype.itemsize
