"""`python -m lab` as a reader types it: what it prints, and how it says no."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from lab.commands.doctor import why_dtype
from lab.measure.records import load

GOLDEN = Path(__file__).parent / "golden" / "vllm-0.33.0-schedules.jsonl"


def last_line(out: str) -> dict:
    return json.loads(out.splitlines()[-1])


def test_conform(lab, tmp_path):
    status, out, _ = lab("conform", str(GOLDEN), "--json")
    assert status == 0 and "112 workloads, 17401 steps, 1171 preemptions, 0 mismatches" in out
    assert last_line(out)[str(GOLDEN)]["mismatches"] == []
    changed = tmp_path / "changed.jsonl"
    changed.write_text(GOLDEN.read_text().splitlines()[0].replace('"free_blocks":54', '"free_blocks":53'))
    status, out, _ = lab("conform", str(changed))
    assert status == 1 and "workload 0 step 0 free_blocks: expected 53, got 54" in out


def test_conform_starts_without_torch():
    code = f"import sys; from lab.cli import main; main(['conform', {str(GOLDEN)!r}]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_prefill(lab):
    options = ("--prompt-tokens", "40", "--chunk-sizes", "1,7,100", "--device", "cpu", "--json")
    status, out, _ = lab("prefill", *options)
    document = last_line(out)
    assert status == 0 and document["ok"] and document["model"] == "tiny"
    assert [row["chunks"] for row in document["rows"]] == [40, 6, 1, 1]
    assert {row["kv_bytes"] for row in document["rows"]} == {document["kv_bytes_formula"]} == {40 * 2 * 4 * 2 * 32 * 4}
    assert len(document["rows"][0]["kv_delta"]) == 4 and document["environment"]["torch"]


def test_prefill_says_no_with_status_1(lab, monkeypatch):
    from lab.checks import equivalence, faults

    check = equivalence.check_prefill
    broken = partial(check, executor_type=faults.RopeRestarted)
    monkeypatch.setattr(equivalence, "check_prefill", broken)
    status, out, _ = lab("prefill", "--prompt-tokens", "40", "--chunk-sizes", "7", "--device", "cpu", "--json")
    assert status == 1 and "NO" in out and not last_line(out)["ok"]


def test_generate_is_the_same_in_small_chunks(lab):
    options = ("--max-tokens", "6", "--device", "cpu", "--json")
    _, whole, _ = lab("generate", "a prompt of some tokens", *options)
    status, chunked, _ = lab("generate", "a prompt of some tokens", "--max-num-batched-tokens", "3", *options)
    assert status == 0 and last_line(whole)["token_ids"] == last_line(chunked)["token_ids"]


def test_the_real_model_answers(lab, monkeypatch, smollm2):
    from lab.model import weights

    monkeypatch.setattr(weights, "load_model", lambda *_, **__: smollm2)
    for options in ((), ("--max-num-batched-tokens", "8"), ("--chat", "--max-num-batched-tokens", "8")):
        text = "What is the capital of France?" if "--chat" in options else "The capital of France is"
        status, out, _ = lab("generate", text, "--max-tokens", "8", *options)
        assert status == 0 and "Paris" in out


def test_record_and_compare(lab, tmp_path, monkeypatch):
    from lab.checks import suite

    monkeypatch.setattr(suite, "SMALL", replace(suite.SMALL, prompt=30, chunk_sizes=(7,)))
    for seed in ("0", "1"):
        out = str(tmp_path / seed)
        assert lab("record", "--model", "tiny", "--device", "cpu", "--seed", seed, "--out", out)[0] == 0
    first, second = ({path.stem: path for path in (tmp_path / s).rglob("*.json")} for s in "01")
    assert set(first) == set(second) == {"prefill-float32", "prefill-bfloat16", "prefill-float16"}
    assert [row["chunk_size"] for row in load(first["prefill-float32"]).rows] == [7, 30]
    a, b = str(first["prefill-float32"]), str(second["prefill-float32"])
    status, _, err = lab("compare", a, b)
    assert status == 2 and "parameter 'seed' is 0 in one and 1 in the other" in err
    status, out, _ = lab("compare", a, b, "--vary", "source", "seed")
    assert status == 0 and "peak_bytes" in out and "x 1.000" in out
    unmeasured = tmp_path / "unmeasured.json"
    unmeasured.write_text(re.sub(r'"peak_bytes": \d+', '"peak_bytes": null', first["prefill-float32"].read_text()))
    status, out, _ = lab("compare", a, str(unmeasured))
    assert status == 0 and re.search(r"peak_bytes  \d+ -> None bytes\n", out)


def test_doctor_says_what_it_chose_and_why(lab):
    status, out, _ = lab("doctor", "--device", "cpu", "--json")
    assert status == 0 and last_line(out)["attention"] == "sdpa" and last_line(out)["attention_reason"]
    assert last_line(out)["dtype"] == "float32" and last_line(out)["dtype_reason"] == "the default on a CPU"
    _, out, _ = lab("doctor", "--device", "cpu", "--dtype", "bfloat16", "--json")
    assert last_line(out)["dtype_reason"] == "asked for"


@pytest.mark.parametrize("found, verb", [((7, 5), "lacks"), ((8, 0), "has")])
def test_doctor_gives_the_capability_as_the_reason_on_a_gpu(monkeypatch, found, verb):
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: found)
    reason = why_dtype(torch.device("cuda"))
    assert f"{found[0]}.{found[1]} {verb} the arithmetic of bfloat16, which begins with 8.0" in reason


@pytest.mark.parametrize(
    "argv, message",
    [
        (("prefill", "--chunk-sizes", "4,0"), "chunk size is 0"),
        (("prefill", "--chunk-sizes", "-4"), "chunk size is -4"),
        (("prefill", "--chunk-sizes", "a"), "'a' is not a comma-separated list"),
        (("prefill", "--prompt-tokens", "0"), "number of prompt tokens is 0"),
        (("prefill", "--prompt", ""), "number of prompt tokens is 0"),
        (("prefill", "--prompt-tokens", "4096"), "4097, above the position limit of 4096"),
        (("prefill", "--block-size", "0"), "block_size is 0"),
        (("prefill", "--repeats", "0"), "repeats is 0"),
        (("prefill", "--threads", "0"), "threads is 0"),
        (("prefill", "--dtype", "int8"), "dtype 'int8' is unknown"),
        (("prefill", "--device", "tpu"), "device 'tpu'"),
        (("prefill", "--attention", "flash"), "attention 'flash' is unknown"),
        (("prefill", "--model", "/nowhere.gguf"), "/nowhere.gguf: no such file"),
        (("generate", "x", "--max-tokens", "0"), "max_tokens is 0"),
        (("generate", "x", "--temperature", "-1"), "temperature is -1"),
        (("generate", "x", "--max-num-batched-tokens", "-2"), "max_num_batched_tokens is -2"),
        (("generate", "x", "--max-num-batched-tokens", "4", "--max-num-seqs", "8"), "(4) is below max_num_seqs (8)"),
        (("generate", ""), "empty prompt"),
        (("generate", "x", "--chat"), "has no chat template"),
        (("conform", "/nowhere"), "cannot read /nowhere"),
        (("compare", "/nowhere", "/nowhere"), "there is no record /nowhere"),
        (("record", "--device", "cpu", "--out", "/dev/null/x"), "cannot write into the folder /dev/null/x: "),
        (("calibrate", "--device", "cpu", "--out", "/dev/null/x"), "cannot write into the folder /dev/null/x"),
        (("prefill", "--prompt-tokens", "9" * 30), "above the position limit of 4096"),
        (("prefill", "--seed", "9" * 30), "it must be from 0 to 4294967295"),
        (("prefill", "--threads", "9" * 30), "it must be at most 1024"),
        (("doctor", "--block-size", "0"), "block_size is 0"),
        (("generate", "\udcff"), "the text is no Unicode"),
        (("compare", ".", "."), ". is not JSON"),
        (("conform", "/dev/null"), "holds no workload"),
        ((), "COMMAND"),
    ],
)
def test_bad_input_is_one_line_and_status_2(lab, argv, message):
    status, out, err = lab(*argv)
    assert status == 2 and message in err and "Traceback" not in err
    assert err.splitlines()[-1].count("error: ") == 1
