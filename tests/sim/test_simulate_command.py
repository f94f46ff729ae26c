"""`python -m lab simulate`: what it prints for a load, on virtual time and on the engine, and how it says no."""

import io
import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from lab.sim.scenario import any_tokens, read_scenarios

GOLDEN = Path(__file__).parents[1] / "golden" / "vllm-0.33.0-schedules.jsonl"
CONFIG = {"num_blocks": 64, "block_size": 16, "max_num_seqs": 12, "max_num_batched_tokens": 512}
LATENCIES = ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "queue_ms")


@pytest.fixture
def simulate(simulate, tmp_path):
    """The command on a file of these loads."""

    def simulate_loads(*loads, options=()):
        path = tmp_path / "load.jsonl"
        path.write_text("\n".join(load if isinstance(load, str) else json.dumps(load) for load in loads))
        return simulate(path, *options)

    return simulate_loads


def load(n=64, shape=(64, 64), **fields) -> dict:
    return {"config": CONFIG, "arrivals": [[0, f"r{i}", *shape, 0] for i in range(n)]} | fields


def test_a_load_under_vllms_policy(simulate):
    status, document = simulate(load())
    assert status == 0 and document["output_tokens_per_s"] == pytest.approx(1669.0, abs=0.05)
    assert (document["preemptions"], document["steps"]) == (31, 448)
    assert document["longest_gap_ms"] == pytest.approx(279.5)
    assert document["computed_tokens"] - document["recomputed_tokens"] == 64 * 127
    assert document["useful_ratio"] == pytest.approx(64 * 127 / document["computed_tokens"])
    assert document["kv_peak_blocks"] == 64
    assert set(document["waiting_reasons"]) == {"max_seqs", "budget", "blocks", "policy", "behind-head"}
    for name in LATENCIES:
        assert document[name].keys() >= {"mean", "p50", "p90", "p95", "p99"}
        assert document[name]["p99_is_max"] == (name != "itl_ms")


def test_another_policy_and_other_times(simulate):
    _, document = simulate(load(), options=("--policy", "reserve", "--step-ms", "10", "--token-ms", "0"))
    assert document["preemptions"] == 0 and document["policy"] == "reserve"
    assert document["longest_gap_ms"] == pytest.approx(10)


def test_arrivals_in_steps_and_in_seconds(simulate):
    arrivals = [[5, "late", 16, 2, 0], [0, "first", 16, 2]]  # any order; the priority may be left out
    _, document = simulate({"config": CONFIG, "arrivals": arrivals}, options=("--step-ms", "1000", "--token-ms", "0"))
    assert (document["steps"], document["duration_s"]) == (7, 4)  # idle steps count and take no time
    _, document = simulate(
        {"config": CONFIG, "arrivals": arrivals, "clock": "seconds"}, options=("--step-ms", "1000", "--token-ms", "0")
    )
    assert (document["steps"], document["duration_s"]) == (4, 7)
    assert document["ttft_ms"]["p99"] == 1000 and document["queue_ms"]["p99"] == 0


def test_the_golden_loads_take_vllms_steps(simulate):
    golden = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    _, document = simulate(*({k: run[k] for k in ("config", "arrivals")} for run in golden))
    assert len(document["loads"]) == len(golden) == 112
    for result, run in zip(document["loads"], golden):
        assert result["steps"] == len(run["steps"])
        assert result["preemptions"] == sum(len(step["preempted"]) for step in run["steps"])
        assert result["computed_tokens"] == sum(n for step in run["steps"] for _, n in step["plan"])


@pytest.mark.parametrize("policy", ["vllm", "swap"])
def test_the_engine_takes_the_same_steps(simulate, policy):
    small = load(8, (14, 12), config={**CONFIG, "num_blocks": 7, "num_cpu_blocks": 2}, clock="steps")
    _, simulated = simulate(small, options=("--policy", policy))
    options = ("--policy", policy, "--executor", "torch", "--model", "tiny", "--device", "cpu")
    status, engine = simulate(small, options=options)
    assert status == 0 and engine["executor"] == "torch"
    exact = ("steps", "preemptions", "computed_tokens", "recomputed_tokens", "output_tokens", "kv_peak_blocks")
    assert {name: engine[name] for name in exact} == {name: simulated[name] for name in exact}
    assert engine["preemptions"] > 0 and engine["waiting_reasons"] == simulated["waiting_reasons"]


def test_the_engine_refuses_what_is_longer_than_the_model(simulate):
    long = load(1, (4000, 200), config={**CONFIG, "num_blocks": 400})
    _, document = simulate(long, options=("--executor", "torch", "--device", "cpu"))
    assert document["refused"] == 1 and "position limit of 4096" in document["refusals"]["r0"]
    _, document = simulate(load(1, (2**40, 1)), options=("--executor", "torch", "--device", "cpu"))
    assert document["refused"] == 1  # and nobody made up a tera of tokens


def test_whole_prompts_run_on_the_engine_under_a_budget_below_its_positions(simulate):
    whole = {**CONFIG, "num_blocks": 400, "max_num_batched_tokens": 64, "enable_chunked_prefill": False}
    options = ("--executor", "torch", "--device", "cpu")
    status, document = simulate(load(2, (40, 3), config=whole), options=options)
    assert status == 0 and document["finished"] == 2
    status, error = simulate(load(2, (40, 4090), config=whole), options=options)
    assert status == 2 and "a request has 4130 tokens, the model 4096 positions" in error
    status, document = simulate(load(0, config=whole), options=options)
    assert status == 0 and document["requests"] == 0


def test_a_request_that_is_refused_is_reported_and_the_rest_is_served(simulate):
    _, document = simulate({"config": CONFIG, "arrivals": [[0, "huge", 9999, 1, 0], [0, "a", 16, 2, 0]]})
    assert (document["requests"], document["refused"], document["finished"]) == (2, 1, 1)
    assert "9999" in document["refusals"]["huge"]


def test_no_token_means_no_latency(simulate):
    _, document = simulate({"config": CONFIG, "arrivals": []})
    assert document["ttft_ms"]["p99"] is None and document["requests"] == document["steps"] == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_the_run_is(simulate, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    simulate(load(3))
    assert f"/{3 * 64}" in terminal.getvalue()


def test_it_starts_without_torch(tmp_path):
    path = tmp_path / "load.jsonl"
    path.write_text(json.dumps(load(1)))
    code = f"import sys; from lab.cli import main; main(['simulate', {str(path)!r}]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "holds no load"),
        ("{", "line 1: Expecting property name"),
        ("[1]", "line 1: it is no JSON object"),
        ('{"arrivals": []}', "line 1: 'config' is None; a load needs it, a JSON object"),
        (load(arrivals={}), "line 1: 'arrivals' is {}; a load needs it, a JSON array"),
        (load(config={}), "line 1: config has no num_blocks"),
        (load(config={**CONFIG, "max_seqs": 3}), "line 1: .*'max_seqs'"),
        (load(config={**CONFIG, "enable_chunked_prefill": "no"}), "line 1: enable_chunked_prefill is 'no'"),
        (load(config={**CONFIG, "num_blocks": 10**12}), "line 1: num_blocks, .* is 1000000000000; it must be at most"),
        (load(config={**CONFIG, "max_num_seqs": 600}), r"line 1: .*\(512\) is below max_num_seqs \(600\)"),
        (load(clock="hours"), "line 1: clock is 'hours'"),
        (load(arrivals=[[0, "a", 4]]), r"line 1: \[0, 'a', 4\] is no arrival; write .*max_tokens"),
        (load(arrivals=[[0, "a", 4, 1], [9, "a", 4, 1]]), "line 1: 2 requests are called 'a'"),
        (load(arrivals=[[-1, "a", 4, 1]]), "line 1: request 'a' arrives at -1; it must be a number from 0"),
        (load(arrivals=[[1e300, "a", 4, 1]]), r"line 1: request 'a' arrives at 1e\+300; it must be a number from 0"),
        (load(arrivals=[[True, "a", 4, 1]]), "line 1: request 'a' arrives at True"),
        (load(arrivals=[[0, "a", True, 1]]), "line 1: prompt tokens of 'a' is True"),
        (load(arrivals=[[0, "a", 2**63, 1]]), "line 1: prompt tokens of 'a' is 9223372036854775808; .* at most"),
        (load(arrivals=[["soon", "a", 4, 1, 0]]), "line 1: request 'a' arrives at 'soon'"),
        (load(arrivals=[[float("nan"), "a", 4, 1, 0]]), "line 1: request 'a' arrives at nan"),
        (load(arrivals=[[0, "a", -4, 1, 0]]), "line 1: prompt tokens of 'a' is -4"),
        (load(arrivals=[[0, "a", 4, 0, 0]]), "line 1: max_tokens of 'a' is 0"),
        (load(arrivals=[[0, 7, 4, 1, 0]]), "line 1: the request id 7"),
        (load(arrivals=[[0, "\ud800", 4, 1, 0]]), r"line 1: the request id '\\ud800' is no string that can be printed"),
        (load(name="a\nb"), r"line 1: the name 'a\\nb' cannot be printed"),
        (load(arrivals=[[0, "a", 4, 1, "high"]]), "line 1: priority of 'a' is 'high'"),
    ],
)
def test_a_bad_load_is_named_by_file_line_and_reason(simulate, content, message):
    status, err = simulate(content)
    assert status == 2 and "load.jsonl" in err and err.count("\n") == 1
    assert re.search(message, err), err


@pytest.mark.parametrize(
    "options, message",
    [
        (("--policy", "lifo"), "policy 'lifo' is unknown; it must be one of vllm"),
        (("--step-ms", "nan"), "step-ms is nan"),
        (("--step-ms", "1e308"), "step-ms is 1e+308"),
        (("--token-ms", "-1"), "token-ms is -1"),
        (("--executor", "torch", "--model", "/nowhere.gguf"), "no such file"),
        (("--trace", "/nowhere/out.json"), "cannot write /nowhere/out.json"),
    ],
)
def test_a_bad_option_is_one_line(simulate, options, message):
    status, err = simulate(load(1), options=options)
    assert status == 2 and message in err and err.count("\n") == 1


def test_a_line_of_2_gb_is_refused_without_being_read_whole(tmp_path):
    path = tmp_path / "load.jsonl"
    with path.open("wb") as file:
        file.truncate(2 * 2**30)
    limit = (2**29, 2**29)  # half a gigabyte of address space
    done = subprocess.run(
        [sys.executable, "-m", "lab", "simulate", str(path)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    assert done.returncode == 2 and "line 1: it is longer than 67,108,864 bytes" in done.stderr


def test_a_line_ends_where_json_says(simulate):
    """Not at a separator of Unicode's, which may stand in a string; and a byte order mark is no part of it."""
    line = json.dumps(load(1, note="a\u2028b\x85c"), ensure_ascii=False)
    status, document = simulate("\ufeff" + line)
    assert status == 0 and document["finished"] == 1


def test_steps_with_nothing_to_do_cost_nothing(simulate):
    _, document = simulate(load(arrivals=[[10**9, "late", 16, 2], [0, "first", 16, 2]]))
    assert document["steps"] == 10**9 + 2 and document["finished"] == 2


def test_a_pool_that_the_machine_has_no_memory_for_is_one_line(simulate):
    huge = load(config={**CONFIG, "num_blocks": 2**24, "block_size": 2**20})
    status, err = simulate(huge, options=("--executor", "torch", "--device", "cpu"))
    assert status == 2 and "no memory for 16777216 KV blocks of 1048576 tokens" in err and err.count("\n") == 1


def test_a_trace_is_of_one_load(simulate):
    status, err = simulate(load(1), load(2), options=("--trace", "out.json"))
    assert status == 2 and "holds 2 loads, and a trace shows one" in err


def test_names_of_loads(tmp_path):
    path = tmp_path / "load.jsonl"
    loads = [load(1, name="short"), load(1, seed=7), load(1)]
    path.write_text("\n\n".join(map(json.dumps, loads)))
    assert [s.name for s in read_scenarios(path)] == ["short", "7", "line 5"]
    assert any_tokens("a", 3) == range(3)
