"""Memory at production size: the closed form and the count agree, and the numbers are those of the models."""

from dataclasses import replace

import pytest
import torch

from lab.core.errors import LabError
from lab.measure import what_if as module
from lab.measure.ledger import Step, prefill_steps, step_moments, step_peak
from lab.measure.presets import PRESETS, find_config
from lab.measure.what_if import what_if

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
SIZES = [512, 131072]
# What each model's own page states: parameters, and bytes of KV a token in bfloat16.
PUBLISHED = {
    "smollm2-135m": (134_515_008, 2 * 30 * 3 * 64 * 2),
    "qwen3-0.6b": (596_049_920, 2 * 28 * 8 * 128 * 2),
    "qwen3-8b": (8_190_735_360, 2 * 36 * 8 * 128 * 2),
    "llama-3-8b": (8_030_261_248, 2 * 32 * 8 * 128 * 2),
    "llama-3.1-8b": (8_030_261_248, 2 * 32 * 8 * 128 * 2),
    "llama-3-70b": (70_553_706_496, 2 * 80 * 8 * 128 * 2),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_predicted_is_counted(name: str) -> None:
    parameters, kv_per_token = PUBLISHED[name]
    for device in (CPU, CUDA):
        rows = what_if(PRESETS[name], 131072, SIZES, device=device)
        assert [row.measured_bytes for row in rows] == [row.peak_bytes for row in rows]
        assert [row.chunks for row in rows] == [256, 1]
        assert {row.kv_bytes for row in rows} == {131072 * kv_per_token}  # the same for every chunk size
        assert {row.weight_bytes for row in rows} == {2 * parameters}
        assert 10 * rows[0].peak_bytes < rows[1].peak_bytes


def test_math_at_its_quadratic_size() -> None:
    rows = what_if(PRESETS["llama-3-8b"], 4096, [256, 4096], attention="math", device=CUDA)
    assert [row.measured_bytes for row in rows] == [row.peak_bytes for row in rows]
    scores = 32 * 4096 * 4096 * 2
    assert rows[1].parts["attention"] > 4 * scores and rows[1].parts["mask"] == 4096 * 4096 * 2
    assert rows[0].parts["attention"] * 16 == rows[1].parts["attention"]


def test_the_parts_of_a_chunk() -> None:
    (row,) = what_if(PRESETS["llama-3-8b"], 131072, [2048])
    assert row.parts == {
        "norm": 2048 * (4096 * 10 + 4),  # in float32 twice, then in bfloat16; a scale a row
        "q, k, v": 2048 * (32 + 2 * 8) * 128 * 2,
        "attention": 2048 * 32 * (2 * 128 * 2 + 2 * 4) + 2 * 2048 * 4 * 128 * 4,  # and a KV head in float32
        "mask": 0,
        "mlp": 2 * 2048 * 14336 * 2,
        "logits, 1 row": 128256 * 2,
        "logits, all rows": 2048 * 128256 * 2,
    }
    (row,) = what_if(PRESETS["llama-3-8b"], 131072, [2048], device=CUDA)
    assert row.parts["attention"] == 2048 * 32 * (128 * 2 + 4)  # the output, and a log-sum-exp a row
    assert row.total_bytes == row.weight_bytes + row.kv_bytes + row.peak_bytes


@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
@pytest.mark.parametrize("attention", ["sdpa", "math"])
def test_the_highest_step_is_found(device: torch.device, attention: str) -> None:
    """Against the closed form of every chunk."""
    config = replace(PRESETS["tiny"], vocab_size=70_000)  # so that the logits of the last row may decide
    for length, size in ((100, 7), (100, 99), (700, 300), (64, 64), (5, 9), (2, 1)):
        (row,) = what_if(config, length, [size], attention=attention, device=device, dtype=torch.bfloat16)
        steps = prefill_steps(Step(config, length, length, torch.bfloat16, row.step.attention, device), size)
        assert row.peak_bytes == max(step_peak(step).nbytes for step in steps)
        assert row.measured_bytes == row.peak_bytes


def test_a_missing_part_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a closed form that forgets the MLP's second half does not agree with the count."""

    def forgetful(step: Step) -> object:
        moments = step_moments(step)
        return max((m for m in moments if m.name != "mlp"), key=lambda moment: moment.nbytes)

    monkeypatch.setattr(module, "step_peak", forgetful)
    (row,) = what_if(PRESETS["llama-3-8b"], 131072, [2048], device=CUDA)
    assert row.measured_bytes != row.peak_bytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 0}, "length is 0"),
        ({"length": 10**9}, "it must be at most"),
        ({"chunk_sizes": [4, -1]}, "chunk size is -1"),
        ({"block_size": 0}, "block_size is 0"),
        ({"block_size": 10**20}, "block_size is 100000000000000000000; it must be at most 16777216"),
        ({"attention": "varlen"}, "'varlen' has no what-if"),
        ({"device": CUDA, "dtype": torch.float32}, "flash attention has no float32"),
    ],
)
def test_refused(change: dict, message: str) -> None:
    arguments = {"length": 64, "chunk_sizes": [8]} | change
    with pytest.raises(LabError, match=message):
        what_if(PRESETS["tiny"], **arguments)


def test_find_config(tmp_path) -> None:
    raw = """{"architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 4096, "rms_norm_eps": 1e-6,
    "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "max_position_embeddings": 8192, "rope_theta": 500000.0}"""
    (tmp_path / "config.json").write_text(raw)
    assert find_config(str(tmp_path)) == find_config(str(tmp_path / "config.json")) == PRESETS["llama-3-8b"]
    for content, message in (("{", "cannot be read as JSON"), ("[]", "is a list"), ("{}", "architecture 'none'")):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(LabError, match=message):
            find_config(str(tmp_path))
    for nowhere in ("llama-4", "\0", "x" * 5000):
        with pytest.raises(LabError) as caught:
            find_config(nowhere)
        assert "\n" not in str(caught.value)
    with pytest.raises(LabError, match="no such model.*llama-3-8b"):
        find_config("llama-4")
