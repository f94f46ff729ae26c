"""Weights as Hugging Face saves them: a directory with `config.json` and `*.safetensors`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from lab.model.config import ModelConfig
from lab.model.errors import ModelError

INDEX = "model.safetensors.index.json"


def read_checkpoint(directory: Path) -> tuple[ModelConfig, Iterator[tuple[str, Tensor]]]:
    """The config, and the weights one by one, on the CPU in the dtype of the file.

    Raises ModelError for files that are missing, damaged, or of a model that is not supported; damage inside a weight
    file is found when the iterator comes to it.
    """
    raw = _read_json(directory / "config.json")
    generation = directory / "generation_config.json"  # a chat model names all tokens that end its turn here
    if generation.exists():
        raw["eos_token_id"] = _read_json(generation).get("eos_token_id", raw.get("eos_token_id"))
    config = ModelConfig.from_hf(raw)
    return config, _weights(_weight_files(directory), config)


def _weights(files: list[Path], config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():
                    # Some files carry the head that is tied to the embedding, or the rope frequencies, once more.
                    tied_head = name == "lm_head.weight" and config.tie_word_embeddings
                    if not tied_head and not name.endswith("rotary_emb.inv_freq"):
                        yield name, file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path.name} is truncated or no safetensors file ({error}); download it again") from None


def _weight_files(directory: Path) -> list[Path]:
    """The files that the index names; without an index, the one usual file or else all there are."""
    if (directory / INDEX).exists():
        weight_map = _read_json(directory / INDEX).get("weight_map")
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise ModelError(f"{INDEX} has no weight_map from weights to files; download it again")
        files = [directory / name for name in sorted(set(weight_map.values()))]
        for path in files:
            if not path.exists():
                raise ModelError(f"{path.name} is missing, which {INDEX} names; download it")
        return files
    usual = directory / "model.safetensors"
    files = [usual] if usual.exists() else sorted(directory.glob("*.safetensors"))
    if not files:
        raise ModelError("the directory has no *.safetensors file; *.bin and *.pt are pickles, which are not read")
    return files


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"the directory has no {path.name}; give one that `save_pretrained` wrote") from None
    except (ValueError, OSError, RecursionError) as error:  # not UTF-8, not JSON, or no file
        raise ModelError(f"{path.name} is not JSON ({error}); download it again") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path.name} holds a {type(content).__name__}, not an object; download it again")
    return content
