"""Tensors of a GPU that isn't there: shapes, dtypes and bytes as its kernels have them, and no numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import bias

from lab.model.sdpa import HALF
from lab.streams_torch.check.tensor import contiguous, getitem, to

aten = torch.ops.aten
FLASH = (8, 0)


def attend(has: tuple[int, int], q: Tensor, k: Tensor, v: Tensor, mask: Any = None, **options: Any) -> Tensor:
    """The choice of PyTorch 2.13 (`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`, `bias.py`)."""
    if isinstance(mask, bias.CausalBias):
        return bias.CausalBias._dispatch(q, k, v, mask, **options)
    assert mask is None
    is_causal = options.get("is_causal", False)
    if has >= FLASH and q.dtype in HALF:
        return aten._scaled_dot_product_flash_attention(q, k, v, 0.0, is_causal)[0]
    assert q.shape[1] == k.shape[1], "the memory-efficient kernel is given repeated heads"
    return aten._scaled_dot_product_efficient_attention(q, k, v, None, False, 0.0, is_causal)[0]


@contextmanager
def fake_cuda(has: tuple[int, int]) -> Iterator[None]:
    """A GPU of this capability, under FakeTensorMode. A CPU build of PyTorch has no guard for its device, which some
    methods of tensors take: they are replaced."""
    index = Tensor.__getitem__

    def get(x: Tensor, at: Any) -> Tensor:
        return getitem(x, at) if x.device.type == "cuda" else index(x, at)

    with (
        patch.object(torch.cuda, "get_device_capability", lambda device: has),
        patch.object(Tensor, "__getitem__", get),
        patch.object(Tensor, "to", to),
        patch.object(Tensor, "float", lambda x: to(x, torch.float32)),
        patch.object(Tensor, "contiguous", contiguous),
        patch.object(F, "scaled_dot_product_attention", partial(attend, has)),
        patch.object(bias, "SDPAParams", lambda *args: args),
        patch.object(bias, "can_use_flash_attention", lambda params: has >= FLASH and params[0].dtype in HALF),
        patch.object(bias, "can_use_efficient_attention", lambda params: True),
    ):
        yield
