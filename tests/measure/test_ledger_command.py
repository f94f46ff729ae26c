"""`python -m lab ledger` as a reader types it."""

import json

import pytest


def test_what_if(lab) -> None:
    command = ("--what-if", "llama-3-8b", "--length", "131072", "--chunk-sizes", "2048", "--json")
    status, out, _ = lab("ledger", *command)
    assert status == 0 and "note: the model has 8192 positions" in out and "16.0 GiB" in out
    document = json.loads(out.splitlines()[-1])
    chunk, whole = document["rows"]
    assert whole["chunk_size"] == 131072 and chunk["kv_bytes"] == whole["kv_bytes"] == 16 * 2**30
    assert all(
        row["peak_bytes"] == row["measured_bytes"] == sum(row["peak_parts"].values()) for row in document["rows"]
    )


def test_within_the_positions_there_is_no_note(lab) -> None:
    status, out, _ = lab("ledger", "--what-if", "tiny", "--length", "100", "--chunk-sizes", "10", "--device", "cpu")
    assert status == 0 and "note" not in out and "operations of cpu" in out


def test_kv_blocks(lab) -> None:
    command = ("--what-if", "llama-3-8b", "--gpu-memory", "24GiB", "--max-num-batched-tokens", "512,8192", "--json")
    status, out, _ = lab("ledger", *command)
    small, large = json.loads(out.splitlines()[-1])["pools"]
    assert status == 0 and small["num_blocks"] == 3382 and large["num_blocks"] == 3110
    assert "3382" in out and "note" not in out


def test_kv_blocks_of_a_model_that_is_here(lab) -> None:
    status, out, _ = lab("ledger", "--model", "tiny", "--device", "cpu", "--max-num-batched-tokens", "64")
    assert status == 0 and "float32" in out and "requests of up to 4096 tokens" in out


def test_a_request_that_cannot_fit(lab) -> None:
    command = ("--what-if", "llama-3-8b", "--gpu-memory", "24GiB", "--max-model-len", "131072")
    status, out, err = lab("ledger", *command)
    assert status == 2 and "3328" in out and "lower max_model_len to 53248" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ("--what-if", "llama-9", "--length", "8"),
            "llama-9: no such model; give a config.json, its directory, or tiny",
        ),
        (("--what-if", "tiny", "--length", "0"), "length is 0"),
        (("--what-if", "tiny", "--length", "-5"), "length is -5"),
        (("--what-if", "tiny", "--length", "9" * 30), "it must be at most"),
        (("--what-if", "tiny", "--length", "8", "--chunk-sizes", "0"), "chunk size is 0"),
        (("--what-if", "tiny", "--length", "8", "--chunk-sizes", "x"), "'x' is not a comma-separated list"),
        (("--what-if", "tiny", "--length", "8", "--dtype", "int4"), "dtype 'int4' is unknown"),
        (("--what-if", "tiny", "--length", "8", "--dtype", "float32"), "flash attention has no float32"),
        (("--what-if", "tiny", "--length", "8", "--attention", "eager"), "'eager' has no what-if"),
        (("--what-if", "tiny", "--length", "8", "--block-size", "0"), "block_size is 0"),
        (("--what-if", "/dev/null", "--length", "8"), "cannot be read as JSON"),
        (("--what-if", "tiny", "--length", "8", "--device", "tpu"), "device 'tpu' has no what-if"),
        (("--what-if", "tiny"), "nothing to compute"),
        (("--what-if", "tiny", "--model", "tiny"), "not allowed with"),
        ((), "one of the arguments --what-if --model is required"),
        (("--what-if", "tiny", "--gpu-memory", "lots"), "'lots' is no amount of memory"),
        (
            ("--what-if", "tiny", "--gpu-memory", "1GiB", "--gpu-memory-utilization", "90"),
            "gpu_memory_utilization is 90",
        ),
        (("--what-if", "tiny", "--gpu-memory", "1GiB", "--max-num-batched-tokens", "0"), "max_num_batched_tokens is 0"),
        (("--what-if", "tiny", "--gpu-memory", "1GiB", "--max-model-len", "-1"), "max_model_len is -1"),
    ],
)
def test_bad_input(lab, argv: tuple[str, ...], message: str) -> None:
    status, _, err = lab("ledger", *argv)
    assert status == 2 and message in err and err.splitlines()[-1].count("error: ") == 1
