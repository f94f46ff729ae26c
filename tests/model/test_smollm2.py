"""The real model: SmolLM2-135M-Instruct from its GGUF, against transformers' own loading of the same file."""

from pathlib import Path

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel

from lab.model.weights import LoadedModel

PROMPT = "The capital of France is Paris. The capital of Italy is"


@pytest.fixture(scope="module")
def oracle(smollm2: LoadedModel) -> PreTrainedModel:
    path = Path(smollm2.source)
    with pytest.MonkeyPatch.context() as patch:
        # transformers 5.24 asks for the package accelerate before it reads a GGUF, and then makes no use of it.
        patch.setattr(transformers.modeling_utils, "is_accelerate_available", lambda *_: True)
        return AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)


def test_what_it_is(smollm2: LoadedModel) -> None:
    config = smollm2.decoder.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads) == (30, 9, 3)
    assert config.tie_word_embeddings and config.eos_token_ids == {2}
    assert sum(weight.numel() for weight in smollm2.decoder.weights.values()) == 134_515_008
    assert smollm2.name == "smollm2" and smollm2.source.endswith(".gguf")


def test_the_weights_are_transformers_own(smollm2: LoadedModel, oracle: PreTrainedModel) -> None:
    """Bit for bit, and so in the order of rows that Hugging Face gives q and k."""
    theirs = oracle.state_dict()
    for name, weight in smollm2.decoder.weights.items():
        assert torch.equal(weight, theirs[name]), name
    assert theirs.keys() - smollm2.decoder.weights.keys() == {"lm_head.weight"}  # tied


def test_the_tokenizer(smollm2: LoadedModel) -> None:
    ids = smollm2.encode(PROMPT)
    assert len(ids) == 12
    assert smollm2.tokenizer.decode(ids) == PROMPT


def test_logits(smollm2: LoadedModel, oracle: PreTrainedModel, driver) -> None:
    tokens = smollm2.encode(" ".join([PROMPT] * 6))
    with torch.inference_mode():
        expected = oracle(torch.tensor([tokens])).logits[0]
    whole = driver(smollm2.decoder).step(a=tokens)["a"]
    assert torch.equal(whole, expected)
    for chunk_size in (5, 17):
        chunked = driver(smollm2.decoder).chunks(tokens, chunk_size)
        assert (chunked - expected).abs().max() < 5e-4  # of logits of size 10 to 30
        assert torch.equal(chunked.argmax(-1), expected.argmax(-1))


def test_greedy_tokens(smollm2: LoadedModel, oracle: PreTrainedModel, driver) -> None:
    tokens = smollm2.encode(PROMPT)
    expected = oracle.generate(torch.tensor([tokens]), max_new_tokens=12, do_sample=False)[0, len(tokens) :].tolist()
    ours = driver(smollm2.decoder)
    logits = ours.step(a=tokens[:5], b=tokens[:3])
    logits = ours.step(a=tokens[5:], b=tokens[3:9])
    greedy = list(ours.greedy("a", logits["a"], len(expected)))
    assert greedy == expected
    assert smollm2.tokenizer.decode(greedy).startswith(" Rome")
