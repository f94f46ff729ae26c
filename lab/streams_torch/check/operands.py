"""What a PyTorch operator reads and writes, by its schema, and which bytes of their storages tensors take."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten

MAX_RUNS = 1024  # of a strided tensor; beyond, all from its first byte to its last
ONLY_WRITE = {"fill_", "zero_", "copy_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_"}
ROWS = {aten.index_select.default, aten.index_copy_.default}  # called with (tensor, dim, index)


@dataclass(frozen=True)
class Operands:
    reads: list[torch.Tensor]
    writes: list[torch.Tensor]

    @property
    def all(self) -> list[torch.Tensor]:
        return [*self.reads, *self.writes]


def operands(func: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Operands:
    """A tensor that is written in place is read too, unless the operator is one that overwrites it."""
    reads: list[torch.Tensor] = []
    writes: list[torch.Tensor] = []
    name = func._schema.name.split("::")[1]
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
        if argument.alias_info is None or not argument.alias_info.is_write:
            reads += tensors
        else:
            writes += tensors
            reads += tensors if name.endswith("_") and name not in ONLY_WRITE else []
    return Operands(reads, writes)


def extents(x: torch.Tensor) -> list[tuple[int, int]]:
    """The bytes of a tensor in its storage, as runs."""
    if x.numel() == 0:
        return []
    item, run, begin = x.element_size(), 1, int(x.storage_offset())
    outer: list[tuple[int, int]] = []  # (size, stride) of dimensions that don't join into the run
    for size, stride in sorted(zip(map(int, x.shape), x.stride()), key=lambda dim: dim[1]):
        if stride == run:
            run *= size
        elif size > 1 and stride > 0:
            outer.append((size, stride))
    if prod(size for size, _ in outer) > MAX_RUNS:
        return [(begin * item, (begin + run + sum((size - 1) * stride for size, stride in outer)) * item)]
    starts = [begin + sum(at) for at in product(*(range(0, n * stride, stride) for n, stride in outer))]
    return [(start * item, (start + run) * item) for start in sorted(starts)]


def touched(func: OpOverload, args: Sequence[Any], x: torch.Tensor) -> list[tuple[int, int]]:
    """The bytes that an operator touches of an operand: only some rows, where it is known which.

    An index of a FakeTensor has no values, so there it is all rows.
    """
    if func in ROWS and x is args[0] and args[1] == 0 and not isinstance(args[2], FakeTensor):
        return [extent for row in args[2].tolist() for extent in extents(x[row])]
    return extents(x)
