"""What all tests share."""

import os

import pytest
import torch

from lab.model.weights import LoadedModel, load_model
from tools.browser import BROWSER, chromium

torch.set_num_threads(1)  # several threads round otherwise in some products, and wait for one another on a busy machine


@pytest.fixture(scope="session")
def smollm2() -> LoadedModel:
    """The real model, SmolLM2-135M-Instruct, float32 on the CPU; loading it takes seconds."""
    return load_model("smollm2", dtype="float32", device="cpu")


@pytest.fixture(scope="session")
def browser():
    """Chromium, one for all tests of a worker: Playwright's synchronous API can't be started twice in a process."""
    if BROWSER is None:
        reason = "no Chromium on this machine (apt-get install chromium)"
        pytest.fail(reason) if os.environ.get("REQUIRE_BROWSER") else pytest.skip(reason)
    with chromium() as browser:
        yield browser
