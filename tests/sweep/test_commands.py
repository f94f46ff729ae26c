"""`lab tune` and `lab sweep` as a reader types them."""

import json

import pytest

from lab.commands.serving import find_gpu
from lab.measure.budget import kv_budget
from lab.measure.presets import find_config

TOY = ("--step-ms", "5", "--kv-blocks", "400", "--jobs", "1")
SMALL = ("--max-num-seqs", "2,16", "--max-num-batched-tokens", "64,256")


@pytest.fixture
def trace(tmp_path):
    """60 requests, ten a second, of 40 prompt and 20 output tokens: 4 are there at once at 5 ms a step and more."""
    path = tmp_path / "load.jsonl"
    arrivals = [[i / 10, str(i), 40, 20] for i in range(60)]
    path.write_text(json.dumps({"config": {"num_blocks": 1}, "clock": "seconds", "arrivals": arrivals}))
    return str(path)


def test_tune_prints_setting_margin_and_flags(lab, trace):
    status, out, _ = lab("tune", "--trace", trace, "--slo", "ttft=1s,itl=50ms", *TOY, *SMALL, "--json")
    document = json.loads(out.splitlines()[-1])
    assert status == 0 and document["max_num_seqs"] == 16 and document["margin"] > 0
    assert document["stable_rate"] == pytest.approx((1 + document["margin"]) * document["rate"])
    assert len(document["rows"]) == 4 and "margin: +" in out
    budget = document["max_num_batched_tokens"]
    assert f"--max-num-seqs 16 --max-num-batched-tokens {budget} --block-size 16 --num-gpu-blocks-override 401" in out
    assert f"--max-running-requests 16 --chunked-prefill-size {budget} --enable-mixed-chunk" in out
    assert "--max-total-tokens 6400" in out


def test_an_slo_that_no_setting_meets_is_an_answer(lab, trace):
    status, out, err = lab("tune", "--trace", trace, "--slo", "ttft=1ms", *TOY, *SMALL, "--json")
    assert status == 1 and "error" not in err
    assert "no setting is stable under this load; the nearest" in out and "ttft p99" in out and "> 0.001 s" in out
    document = json.loads(out.splitlines()[-1])
    assert document["max_num_seqs"] is None and document["lower"] is None
    assert "nor under any lower load" in out


def test_too_much_load_is_answered_with_the_load_that_would_hold(lab, trace):
    """At half a second a step a request takes 10 s, and 16 at once serve 1.6 a second: of 10 asked for a sixth."""
    slow = ("--step-ms", "500", "--kv-blocks", "400", "--jobs", "1")
    status, out, _ = lab("tune", "--trace", trace, *slow, *SMALL, "--json")
    lower = json.loads(out.splitlines()[-1])["lower"]
    assert status == 1 and lower["max_num_seqs"] == 16 and 0 < lower["stable_rate"] < lower["rate"]
    assert lower["margin"] == pytest.approx(lower["stable_rate"] / lower["rate"] - 1)
    assert "requests/s would hold:" in out and "margin: -" in out and "--max-num-seqs 16" in out


def test_a_larger_budget_shrinks_the_pool_of_a_gpu(lab, trace):
    gpu = ("--model", "llama-3.1-8b", "--gpu", "rtx4090", "--jobs", "1")
    knobs = ("--max-num-seqs", "16", "--max-num-batched-tokens", "512,8192")
    status, out, _ = lab("tune", "--trace", trace, *gpu, *knobs, "--json")
    document = json.loads(out.splitlines()[-1])
    blocks = {row["max_num_batched_tokens"]: row["kv_blocks"] for row in document["rows"]}
    config, memory = find_config("llama-3.1-8b"), int(find_gpu("rtx4090").memory_bytes)
    pools = {n: kv_budget(config, memory, max_num_batched_tokens=n, max_num_seqs=16) for n in (512, 8192)}
    assert status == 0 and 0 < blocks[8192] < blocks[512]
    assert blocks == {n: pool.num_blocks - 1 for n, pool in pools.items()}  # vLLM keeps one to itself
    assert "--gpu-memory-utilization 0.9" in document["flags"]["vLLM"]
    assert "--max-model-len 60" in document["flags"]["vLLM"]
    assert "--context-length 60" in document["flags"]["SGLang"]
    static = float(document["flags"]["SGLang"].split()[-3])
    assert 0.8 < static <= 0.9  # weights and KV; what a step needs is not static


def test_sweep_is_a_row_for_each_setting_and_speed(lab, trace):
    status, out, _ = lab("sweep", "--trace", trace, *TOY, *SMALL, "--speeds", "1,20", "--json")
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert status == 0 and [row["speed"] for row in rows] == [1.0] * 4 + [20.0] * 4
    assert {row["verdict"] for row in rows} >= {"stable", "under-used"}
    assert len(out.splitlines()) == 1 + 8 + 1


@pytest.mark.parametrize(
    "argv, message",
    [
        (("--slo", "fast"), "SLO 'fast': 'fast' is no limit"),
        (("--slo", "ttft=0ms"), "is no limit"),
        (("--slo", "ttft=-1s"), "is no limit"),
        (("--slo", "ttft=1s,ttft=2s"), "is no limit"),
        (("--slo", ""), "is no limit"),
        (("--requests", "0"), "number of requests is 0"),
        (("--requests", "1"), "all come at once"),
        (("--policy", "none"), "policy 'none' is unknown"),
        (("--jobs", "0"), "jobs is 0"),
        (("--cluster", "here"), "write it like dask://host:8786"),
        (("--kv-blocks", "0"), "num_blocks is 0"),
        (("--max-num-seqs", "512"), "every max_num_seqs is above every max_num_batched_tokens"),
        (("--max-num-seqs", "0"), "max_num_seqs is 0"),
        (("--token-ms", "-1"), "token-ms is -1"),
    ],
)
def test_bad_input_is_one_line(lab, trace, argv, message):
    status, _, err = lab("tune", "--trace", trace, *TOY, *SMALL, *argv)
    assert status == 2 and message in err and "Traceback" not in err
    assert err.splitlines()[-1].count("error: ") == 1


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("empty.jsonl", "", "holds no load"),
        ("none.csv", None, "cannot read"),
        ("what.txt", "x", "a trace is Azure's .csv or Mooncake's .jsonl"),
        ("steps.jsonl", '{"config": {"num_blocks": 1}, "arrivals": [[0, "a", 1, 1]]}', "counts time in steps"),
        ("idle.jsonl", '{"config": {"num_blocks": 1}, "arrivals": [], "clock": "seconds"}', "holds no request"),
        ("two.jsonl", '{"config": {"num_blocks": 1}, "arrivals": [[0, "a", 1, 1]]}\n' * 2, "holds 2 loads"),
    ],
)
def test_a_trace_that_is_none_is_one_line(lab, tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    status, _, err = lab("tune", "--trace", str(tmp_path / name), *TOY)
    assert status == 2 and message in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "argv, message",
    [
        (("--gpu", "H100"), "needs --model"),
        (("--gpu", "B9000", "--model", "tiny"), "GPU 'B9000' has no data sheet"),
        (("--step-ms", "5"), "the KV pool has no size"),
        (("--gpu", "T4", "--model", "llama-3-70b"), "raise gpu_memory_utilization"),
        (("--cost-model", "/nowhere.json", "--kv-blocks", "9"), "is no cost model"),
        ((), "one of the arguments"),
    ],
)
def test_a_machine_that_is_none_is_one_line(lab, trace, argv, message):
    status, _, err = lab("tune", "--trace", trace, *argv)
    assert status == 2 and message in err and "Traceback" not in err


def test_gpus_go_by_their_name_however_it_is_written():
    assert find_gpu("rtx 4090") is find_gpu("RTX4090")
