"""Finding a model by what the reader calls it, and loading it. Never a pickle."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.device import parse_dtype, resolve_device
from lab.model.errors import ModelError
from lab.model.tiny import TINY, random_weights


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


def load_model(
    spec: str,
    *,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    seed: int = 0,
) -> LoadedModel:
    """Load a model. `spec` is "tiny" or one of its kind (random weights made from `seed`, no download).

    Raises ModelError, in one line, for what is not there, not supported or damaged.
    """
    target = resolve_device(device)
    wanted = parse_dtype(dtype, target)
    if spec in TINY:
        config = TINY[spec]
        weights, source = random_weights(config, seed), f"random weights, seed {seed}"
        return LoadedModel(_decoder(config, weights, wanted, target), spec, source)
    raise ModelError(f"no model {spec!r}; there is {', '.join(TINY)}")


def _decoder(config: ModelConfig, weights: dict[str, Tensor], dtype: torch.dtype, device: torch.device) -> Decoder:
    return Decoder(config, {name: weight.to(device, dtype) for name, weight in weights.items()})
