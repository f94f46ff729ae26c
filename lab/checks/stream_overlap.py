"""Two streams at once on a GPU, when it helps; and the operations that copy without being called so."""

from collections.abc import Callable
from typing import Any

import torch

from lab.checks.stream_costs import between, gate, mark, median_us
from lab.measure.records import Row
from lab.streams.trace import Work
from lab.streams_torch.profile import profiled

MATRIX_SIZES = (64, 256, 1024, 2048, 4096)
PRODUCTS = 10  # on each stream


def overlap_of_products(device: torch.device) -> list[Row]:
    """Matrix products on two streams and all on one, behind a gate and as fast as the host launches them."""
    streams = torch.cuda.Stream(), torch.cuda.Stream()

    def sample(operands: tuple[torch.Tensor, ...], used: int, is_gated: bool) -> float:
        left, right, *results = operands
        begin = gate(20_000, *streams) if is_gated else mark(streams[0])
        for _ in range(PRODUCTS):
            for j in range(2):
                with torch.cuda.stream(streams[j % used]):
                    torch.mm(left, right, out=results[j])
        streams[0].wait_stream(streams[1])
        return between(begin, mark(streams[0]))

    rows: list[Row] = []
    for n in MATRIX_SIZES:
        operands = tuple(torch.ones(n, n, device=device, dtype=torch.float16) for _ in range(4))
        for is_gated in (False, True):
            one, two = (median_us(lambda: sample(operands, used, is_gated)) for used in (1, 2))  # noqa: B023
            row: Row = {
                "n": n,
                "products": 2 * PRODUCTS,
                "gated": is_gated,
                "one_stream_us": one,
                "two_streams_us": two,
            }
            rows.append({**row, "speed_up": one / two})
    return rows


def hidden_copies(device: torch.device) -> list[Row]:
    """Which operations copy, and what a count of "Memcpy DtoD" sees of them."""
    x, kv = torch.ones(1024, 1024, device=device), torch.zeros(8, 1024, device=device)
    # name: (operation, copies of the device that the profile must show, whether the result shares x's storage)
    operations: dict[str, tuple[Callable[[], torch.Tensor], int, bool]] = {
        "x.view(-1)": (lambda: x.view(-1), 0, True),
        "x.t()": (lambda: x.t(), 0, True),
        "x.to(x.dtype)": (lambda: x.to(x.dtype), 0, True),
        "x.clone()": (lambda: x.clone(), 1, False),
        "x.t().contiguous()": (lambda: x.t().contiguous(), 0, False),
        "x.t().reshape(-1)": (lambda: x.t().reshape(-1), 0, False),
        "x.half()": (lambda: x.half(), 0, False),
        "torch.cat([x, x])": (lambda: torch.cat([x, x]), 0, False),
        "kv[0:3].copy_(x[0:3])": (lambda: kv[0:3].copy_(x[0:3]), 1, False),
        "kv[[0, 1, 2]].copy_(x[0:3])": (lambda: kv[[0, 1, 2]].copy_(x[0:3]), 1, False),
    }
    return [copies_row(what, *operation, x) for what, operation in operations.items()]


def copies_row(what: str, run: Callable[[], torch.Tensor], copies: int, shares: bool, x: torch.Tensor) -> Row:
    run()  # what is loaded at first use isn't the operation's
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    works: list[Work] = []
    with profiled(works):
        result = run()
    found = [work for work in works if work.is_device_copy]
    row: dict[str, Any] = {
        "what": what,
        "device_copies": len(found),
        "device_bytes": sum(work.nbytes for work in found),
        "kernels": len([work for work in works if work.nbytes == 0]),
        "allocations": torch.cuda.memory_stats()["allocation.all.allocated"] - before,
        "shares_storage": result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
    }
    return {**row, "match": (row["device_copies"], row["shares_storage"]) == (copies, shares)}
