"""Rotary position embedding: which frequencies a model turns with, and the turning (RoFormer, arXiv 2104.09864)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lab.model.errors import ModelError

Rope = tuple[Tensor, Tensor]  # cos and sin, as `rope_tables` makes them
ROPE_TYPES = ("default", "linear", "llama3")


@dataclass(frozen=True)
class RopeConfig:
    """How the frequencies are made; the rules of the types are those of transformers 5 (`modeling_rope_utils.py`).

    - `default`: `theta ** (-2i / head_dim)`;
    - `linear`: all of them divided by `factor`;
    - `llama3`: the slow ones divided by `factor`, the fast ones kept, those between blended.

    `divisors`, one for each frequency, is how GGUF files write `llama3` (tensor `rope_freqs.weight`).
    """

    rope_type: str = "default"
    theta: float = 10000.0
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192
    divisors: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("theta", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise ModelError(f"rope's {name} is {value!r}; it must be a number above 0")

    @classmethod
    def from_hf(cls, raw: Mapping[str, Any]) -> "RopeConfig":
        """From a `config.json`: `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling` (before it).

        Raises ModelError for a rope type that is not in `ROPE_TYPES`, and for one whose settings are not all there.
        """
        settings = {"rope_theta": raw.get("rope_theta") or 10000.0, **(raw.get("rope_scaling") or {})}
        settings |= raw.get("rope_parameters") or {}
        rope_type = settings.get("rope_type") or settings.get("type") or "default"
        if rope_type not in ROPE_TYPES:
            raise ModelError(f"rope type {rope_type!r} is not supported; there is {', '.join(ROPE_TYPES)}")
        rotated = raw.get("partial_rotary_factor") or settings.get("partial_rotary_factor") or 1.0
        if rotated != 1.0:
            raise ModelError(f"partial_rotary_factor {rotated} is not supported; only whole heads, 1.0, are")
        needed = {"default": (), "linear": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor")}
        missing = [name for name in needed[rope_type] if name not in settings]
        if missing:
            raise ModelError(f"rope type {rope_type!r} needs {', '.join(missing)} in config.json's rope_parameters")
        own = {name: settings[name] for name in needed[rope_type]}
        if rope_type == "llama3":
            trained = settings.get("original_max_position_embeddings") or raw["max_position_embeddings"]
            own["original_max_position_embeddings"] = trained
        return cls(rope_type, settings["rope_theta"], **own)

    def inverse_frequencies(self, head_dim: int) -> Tensor:
        """float32 `[head_dim / 2]`, radians per position."""
        inv_freq = 1.0 / (self.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim))
        if self.divisors is not None:
            return inv_freq / torch.tensor(self.divisors, dtype=torch.float32)
        if self.rope_type == "linear":
            return inv_freq / self.factor
        if self.rope_type == "llama3":
            return self._llama3(inv_freq)
        return inv_freq

    def _llama3(self, inv_freq: Tensor) -> Tensor:
        """A wave that is long beside the trained context is stretched, a short one kept, and between they blend."""
        trained, low, high = self.original_max_position_embeddings, self.low_freq_factor, self.high_freq_factor
        wavelength = 2 * math.pi / inv_freq
        stretched = torch.where(wavelength > trained / low, inv_freq / self.factor, inv_freq)
        smooth = (trained / wavelength - low) / (high - low)
        blended = (1 - smooth) * stretched / self.factor + smooth * stretched
        between = ~(wavelength < trained / high) & ~(wavelength > trained / low)
        return torch.where(between, blended, stretched)


def rope_tables(positions: Tensor, inv_freq: Tensor, dtype: torch.dtype) -> Rope:
    """cos and signed sin for `rotate_`, each `[T, 1, head_dim]` in `dtype`, from positions `[T]`.

    The angles are float32 whatever `dtype` is: they are part of the model, not of its rounding.
    """
    angles = positions[:, None].float() * inv_freq
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    return torch.cat((cos, cos), -1)[:, None], torch.cat((-sin, sin), -1)[:, None]


def rotate_(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn `x [T, heads, head_dim]` in place: dimension i with i + head_dim / 2 (the pairing of Hugging Face).

    `(x1, x2) cos + (-x2, x1) sin`; the minus is in `sin`, so that one swapped copy of x is all the workspace there is.
    """
    swapped = x.roll(x.shape[-1] // 2, -1).mul_(sin)
    return x.mul_(cos).add_(swapped)
