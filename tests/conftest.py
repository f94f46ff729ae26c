"""What all tests share."""

import pytest
import torch

from lab.model.weights import LoadedModel, load_model

torch.set_num_threads(1)  # several threads round otherwise in some products, and wait for one another on a busy machine


@pytest.fixture(scope="session")
def smollm2() -> LoadedModel:
    """The real model, SmolLM2-135M-Instruct, float32 on the CPU; loading it takes seconds."""
    return load_model("smollm2", dtype="float32", device="cpu")
