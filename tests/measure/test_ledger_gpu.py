"""The ledger on a GPU, as far as tensors without numbers show it: what its kernels return is counted, no scratch."""

from dataclasses import replace

import pytest
import torch

from lab.checks.sizes import SLICE
from lab.measure.launches import count_ops
from lab.measure.ledger import Step, measure_step, step_peak
from lab.measure.memory import PeakMemory
from lab.measure.steps import StepRunner
from lab.measure.work import Piece
from lab.model.attention import Sdpa, select_backend
from lab.model.weights import load_model
from tests.measure.fake_cuda import fake_cuda

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
T4, H100 = (7, 5), (9, 0)
CONFIG = replace(SLICE, num_hidden_layers=2)
CASES = [(T4, torch.float32), (T4, torch.float16), (H100, torch.float32), (H100, torch.float16), (H100, torch.bfloat16)]


@pytest.mark.parametrize(("has", "dtype"), CASES)
@pytest.mark.parametrize("name", ["sdpa", "math"])
def test_every_kind_of_step(has: tuple[int, int], dtype: torch.dtype, name: str) -> None:
    with fake_cuda(has):
        attention = select_backend(name, CONFIG, GPU, dtype, 16).backend
        for num_tokens, kv_length in ((1, 1), (1, 4096), (2, 4096), (1024, 1024), (1024, 8192), (4096, 4096)):
            step = Step(CONFIG, num_tokens, kv_length, dtype, attention, GPU)
            random_state = measure_step(step).peak_bytes - step_peak(step).nbytes
            assert 0 <= random_state <= 32, (num_tokens, kv_length)  # a seed and an offset, for a dropout of 0


def test_what_a_gpu_runs_can_be_watched() -> None:
    """PyTorch's CausalBias can't be made under a mode that sees its empty tensor first."""
    decoder = load_model("tiny", dtype="float32", device="cpu").decoder
    attention = Sdpa(CPU, torch.float32)
    attention.on_gpu = attention.expands_kv = True
    chunk = StepRunner(decoder, attention, 64).step([Piece(16, 64)])
    with PeakMemory() as memory:
        chunk()
    assert memory.peak_bytes > 0 and count_ops(chunk) > 0
