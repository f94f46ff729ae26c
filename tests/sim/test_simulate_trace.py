"""`python -m lab simulate` on a trace as it is published, and what is kept of a run."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = {"num_blocks": 20, "max_num_seqs": 8, "max_num_batched_tokens": 256}
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def rows(n: int, seed: int = 0) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    return [(i // 20, rng.randint(1, 200), rng.randint(1, 60)) for i in range(n)]


def azure(path: Path, n: int) -> Path:
    lines = [f"2024-05-10 00:{s // 60 % 60:02}:{s % 60:02},{p},{m}\n" for s, p, m in rows(n)]
    path.write_text(HEADER + "".join(lines))
    return path


def mooncake(path: Path, n: int) -> Path:
    lines = [{"timestamp": 1000 * s, "input_length": p, "output_length": m} for s, p, m in rows(n)]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_a_trace_and_the_load_with_its_arrivals_are_one(simulate, tmp_path):
    path = azure(tmp_path / "a.csv", 60)
    status, document = simulate(path, "--config", json.dumps(CONFIG))
    assert status == 0 and document["requests"] == document["finished"] == 60 and document["preemptions"] > 0
    arrivals = [[s, f"line-{i}", p, m] for i, (s, p, m) in enumerate(rows(60), start=2)]
    load = tmp_path / "load.jsonl"
    load.write_text(json.dumps({"config": CONFIG, "clock": "seconds", "arrivals": arrivals}))
    _, same = simulate(load)
    assert document == same | {"load": "a.csv"}
    _, other = simulate(mooncake(tmp_path / "m.jsonl", 60), "--config", json.dumps(CONFIG))
    assert other == same | {"load": "m.jsonl"}


def test_a_run_that_is_kept_for_a_picture_has_the_same_document(simulate, tmp_path):
    path = azure(tmp_path / "a.csv", 60)
    for config in (CONFIG, CONFIG | {"num_blocks": 12}):  # and with requests that are refused
        _, streamed = simulate(path, "--config", json.dumps(config))
        _, kept = simulate(path, "--config", json.dumps(config), "--trace", str(tmp_path / "out.json"))
        assert kept == streamed
    assert kept["refused"] == len(kept["refusals"]) > 0


def test_a_trace_runs_on_the_engine(simulate, tmp_path):
    path = azure(tmp_path / "a.csv", 6)
    options = ("--executor", "torch", "--model", "tiny", "--device", "cpu")
    status, document = simulate(path, "--config", json.dumps(CONFIG), *options)
    assert status == 0 and document["finished"] == 6


def test_a_long_trace_takes_the_memory_of_those_that_are_there_at_once(tmp_path):
    code = (
        "import sys, resource; from lab.cli import main\n"
        "main(['simulate', sys.argv[1], '--config', '{\"num_blocks\": 1000}', '--token-ms', '0'])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    memory = []
    for n in (1_000, 10_000):
        path = tmp_path / f"{n}.csv"
        path.write_text(
            HEADER + "".join(f"2024-05-10 {i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02},16,2\n" for i in range(n))
        )
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
        memory.append(int(done.stdout.splitlines()[-1]))
    assert memory[1] - memory[0] < 4 * 1024  # KiB; kept whole, 9,000 requests more take 9 MiB


def test_a_trace_without_a_config_is_told_of_it(simulate, tmp_path):
    for path in (azure(tmp_path / "a.csv", 3), mooncake(tmp_path / "m.jsonl", 3)):
        status, err = simulate(path)
        assert status == 2 and f"{path.name} is a trace, which has no limits; give --config, like" in err


@pytest.mark.parametrize(
    "config, message",
    [
        ("", "config '': Expecting value"),
        ("7", "config '7': it is no JSON object"),
        ("{}", "config '{}': config has no num_blocks"),
        ('{"num_blocks": 0}', "num_blocks is 0; it must be at least 1"),
        ('{"num_blocks": 9, "seqs": 3}', "config knows no 'seqs'"),
        ("[" * 100_000, "config "),
    ],
)
def test_a_bad_config_is_one_line(simulate, tmp_path, config, message):
    path = azure(tmp_path / "a.csv", 3)
    status, err = simulate(path, "--config", config)
    assert status == 2 and err.count("\n") == 1 and re.search(message, err), err


def test_a_line_that_breaks_in_the_middle_of_the_run_is_named(simulate, tmp_path):
    path = azure(tmp_path / "a.csv", 30)
    path.write_text(path.read_text() + "2024-05-10 00:59:00,-4,7\n")
    status, err = simulate(path, "--config", json.dumps(CONFIG))
    assert status == 2 and "a.csv line 32: -4 prompt and 7 output tokens" in err and err.count("\n") == 1
