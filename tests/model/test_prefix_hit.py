"""The second time a prompt comes, its KV is there, and its last hidden state is not: how much must be computed?"""

import pytest
import torch

from lab.checks.equivalence import random_prompt
from lab.model.decoder import Decoder
from lab.model.weights import load_model


@pytest.fixture(scope="module")
def tiny() -> Decoder:
    return load_model("tiny", dtype="float32", device="cpu").decoder


@pytest.mark.parametrize(
    ("hit", "kv_length", "right"),
    [
        (12, 16, True),  # whole blocks of 4, at most the prompt less one token
        (15, 16, True),  # tokens
        (16, 17, False),  # nano-vllm#144: the last token once more, behind itself
    ],
)
def test_a_hit_may_hold_all_of_a_prompt_but_its_last_token(driver, tiny: Decoder, hit, kv_length, right) -> None:
    prompt, sequences = random_prompt(tiny, 16), driver(tiny)
    first = sequences.step(a=prompt)["a"][-1]
    sequences.lengths["a"] = hit
    again = sequences.step(a=prompt[min(hit, 15) :])["a"][-1]
    assert sequences.lengths["a"] == kv_length
    assert torch.allclose(again, first, atol=1e-4, rtol=0) == right
