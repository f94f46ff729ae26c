"""Tests of what only a GPU can show; without one each is skipped and says so (`pytest -rs`)."""

import pytest
import torch

from lab.core.errors import LabError
from lab.model.device import disable_tf32, parse_dtype, resolve_device


@pytest.fixture(scope="session")
def device() -> torch.device:
    try:
        found = resolve_device("cuda")
    except LabError as error:
        pytest.skip(str(error))
    disable_tf32()
    return found


@pytest.fixture(params=["float32", "float16", "bfloat16"])
def dtype(request: pytest.FixtureRequest, device: torch.device) -> torch.dtype:
    try:
        return parse_dtype(request.param, device)
    except LabError as error:
        pytest.skip(str(error))
