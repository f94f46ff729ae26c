"""How large the recorded experiments are, and the model of those that run on a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.model.config import ModelConfig

# Four layers of the shape of a model of a billion weights: on a GPU its steps are more than their launches, and it has
# enough heads that flash attention does not split the keys, whose partial sums are scratch space no counter sees.
SLICE = ModelConfig(
    vocab_size=8192,
    hidden_size=2048,
    intermediate_size=5632,
    num_hidden_layers=4,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    max_position_embeddings=16384,
)


@dataclass(frozen=True)
class Sizes:
    """In tokens, but for the repeats, the batches, and the cap's MiB."""

    prompt: int = 1024
    chunk_sizes: tuple[int, ...] = (64, 128, 256, 512)
    lengths: tuple[int, ...] = (512, 2048)  # two, or the causes of cost can't be told apart
    bits_prompt: int = 200
    bits_chunk_sizes: tuple[int, ...] = (1, 17, 64, 128)
    memory_lengths: tuple[int, ...] = (512, 2048)
    memory_chunk_sizes: tuple[int, ...] = (64, 128, 256, 512)
    prefill_tokens: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    decode_batches: tuple[int, ...] = (1, 4, 16, 64)
    cap_prompt: int = 4096
    cap_chunk_size: int = 256
    cap_mib: int = 48
    gap_prompt: int = 2048
    gap_budgets: tuple[int, ...] = (128, 512)
    decodes: int = 8
    served: int = 24  # requests
    repeats: int = 5
    serving_repeats: int = 3


SMALL = Sizes()  # every model has positions for it, and a CPU takes seconds
LARGE = replace(
    SMALL,
    lengths=(2048, 8192),
    memory_lengths=(4096, 8192),
    memory_chunk_sizes=(1024, 2048, 4096),
    prefill_tokens=(1, 4, 16, 64, 256, 1024, 4096),
    cap_prompt=8192,
    gap_prompt=16384 - 1,
    gap_budgets=(512, 2048),
)


def whole_too(chunk_sizes: Sequence[int], length: int) -> list[int]:
    """The chunk sizes below the length, and all of it at once."""
    return [*(size for size in chunk_sizes if size < length), length]
