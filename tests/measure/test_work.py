"""The closed forms of a step's work, by hand and against PyTorch's own counter."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lab.measure.launches import count_kernels, count_ops
from lab.measure.presets import PRESETS
from lab.measure.steps import StepRunner
from lab.measure.work import Piece, prefill_pieces, step_work
from lab.model.attention import Math
from lab.model.decoder import Decoder
from lab.model.tiny import TINY, random_weights

CPU = torch.device("cpu")


def counted(config: str, pieces: list[Piece]) -> int:
    decoder = Decoder(TINY[config], random_weights(TINY[config], 0))
    step = StepRunner(decoder, Math(), max(p.kv_length for p in pieces), len(pieces)).step(pieces)
    with FlopCounterMode(display=False) as counter:
        step()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("config", TINY)
@pytest.mark.parametrize(
    "pieces",
    [
        [Piece(1, 1)],
        [Piece(1, 40)] * 3,
        [Piece(20, 20)],
        [Piece(7, 40, sampled=False)],
        [Piece(16, 33), Piece(1, 50), Piece(5, 5, sampled=False)],
    ],
    ids=str,
)
def test_operations_are_those_that_pytorch_counts(config: str, pieces: list[Piece]) -> None:
    """`math` multiplies all pairs and masks some away afterwards; the rest of the step is counted as it is."""
    work = step_work(TINY[config], pieces, torch.float32)
    seen = sum(piece.seen for piece in pieces)
    pairs = sum(piece.num_tokens * piece.kv_length for piece in pieces)
    assert work.flops - work.attention_flops + work.attention_flops * pairs // seen == counted(config, pieces)


def test_seen_pairs_by_hand() -> None:
    assert Piece(3, 3).seen == 1 + 2 + 3 and Piece(2, 5).seen == 4 + 5 and Piece(1, 9).seen == 9
    for size in (1, 7, 64, 100, 300):  # however it is cut, a prompt has the same pairs
        assert sum(piece.seen for piece in prefill_pieces(300, size)) == 300 * 301 // 2


def test_llama_3_8b_by_hand() -> None:
    config = PRESETS["llama-3-8b"]
    work = step_work(config, [Piece(1, 1000)] * 4, torch.bfloat16)
    head = 128256 * 4096
    assert work.matmul_flops + work.logits_flops == 4 * 2 * (8030261248 - head - 65 * 4096)  # all but embedding, norms
    assert work.weight_bytes == 2 * (8030261248 - head)
    assert work.kv_tokens == 4000 and work.kv_bytes == 4004 * 128 * 1024
    unsampled = step_work(config, [Piece(8, 8, sampled=False)], torch.bfloat16)
    assert unsampled.weight_bytes == 2 * (8030261248 - 2 * head) and unsampled.logits_flops == 0


def test_a_tied_head_is_read_only_for_logits() -> None:
    config = PRESETS["smollm2-135m"]
    sampled, unsampled = (step_work(config, [Piece(1, 1, s)], torch.float32).weight_bytes for s in (True, False))
    assert sampled == 4 * 134_515_008 and sampled - unsampled == 4 * 49152 * 576


@pytest.mark.parametrize(("chunk_size", "steps", "kv_tokens"), [(4096, 1, 4096), (512, 8, 18_432), (64, 64, 133_120)])
def test_kv_read_again(chunk_size: int, steps: int, kv_tokens: int) -> None:
    works = [step_work(TINY["tiny"], [piece], torch.float32) for piece in prefill_pieces(4096, chunk_size)]
    assert len(works) == steps and sum(work.kv_tokens for work in works) == kv_tokens
    assert sum(work.flops for work in works) == step_work(TINY["tiny"], [Piece(4096, 4096)], torch.float32).flops


def test_what_is_launched() -> None:
    a = torch.ones(4, 6)
    assert count_ops(lambda: (a @ a.T).relu_()) == 2
    assert count_ops(lambda: (a.view(-1)[2:], a.T, torch.empty(3), torch.empty_like(a))) == 0
    with torch.inference_mode():
        assert count_ops(lambda: torch.nn.functional.linear(a, a)) == 1  # not the transpose in it
    assert count_kernels(lambda: a @ a.T, CPU) is None  # not 0: the CPU launches no kernels
