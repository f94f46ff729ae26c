"""Published traces as they are, and broken ones refused with file, line and reason."""

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.sim.traces import MAX_LINE_BYTES, BadTrace, read_azure, read_mooncake, read_trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
TRACES = Path(__file__).parents[3] / "shared" / "traces"


def shapes(requests):
    return [(r.arrival, r.num_prompt_tokens, r.sampling.max_tokens) for r in requests]


def written(tmp_path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, newline="")
    return path


def test_azure_2023_and_2024_by_hand(tmp_path):
    rows = "2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n"
    assert shapes(read_azure(written(tmp_path, "a.csv", HEADER + rows))) == [
        (0.0, 374, 44),
        (pytest.approx(4.314579), 396, 109),
    ]
    rows = "2024-05-10 00:00:00.009930+00:00,2162,5\n\n2024-05-10 00:00:01.009930+00:00,9,7\n"
    assert shapes(read_azure(written(tmp_path, "b.csv", HEADER + rows))) == [(0.0, 2162, 5), (1.0, 9, 7)]


def test_stamps_without_a_zone_are_utc(tmp_path, monkeypatch):
    """Where clocks are set back in winter, an hour of the trace would come twice."""
    rows = "2023-11-05 05:59:59,9,7\n2023-11-05 01:30:00-05:00,9,7\n2023-11-05 07:00:00,9,7\n"
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        arrivals = [
            arrival for arrival, _, _ in shapes(read_azure(written(tmp_path, "a.csv", "\ufeff" + HEADER + rows)))
        ]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert arrivals == [0, 1801, 3601]


def test_columns_may_stand_in_any_order(tmp_path):
    text = "GeneratedTokens,x,TIMESTAMP,ContextTokens\n7,_,2024-05-10 00:00:00,9\n"
    assert shapes(read_azure(written(tmp_path, "a.csv", text))) == [(0.0, 9, 7)]


def test_mooncake_by_hand_with_equal_stamps(tmp_path):
    line = '{{"timestamp": {}, "input_length": {}, "output_length": 52, "hash_ids": [0, 1]}}\n'
    path = written(tmp_path, "m.jsonl", line.format(27482, 6955) + line.format(30535, 6472) * 2)
    assert shapes(read_mooncake(path)) == [(0.0, 6955, 52), *2 * [(pytest.approx(3.053), 6472, 52)]]
    assert shapes(read_trace(path)) == shapes(read_mooncake(path))


@pytest.mark.parametrize("name, n, prompt, output", [("conv", 19_366, 1155, 211), ("code", 8_819, 2048, 28)])
def test_azures_trace_whole(name, n, prompt, output):
    path = TRACES / f"azure2023_{name}.csv"
    if not path.exists():
        pytest.skip(f"the trace is not here: {path}")
    rows = shapes(read_trace(path))
    assert len(rows) == n
    assert sum(p for _, p, _ in rows) / n == pytest.approx(prompt, abs=0.5)
    assert sum(m for _, _, m in rows) / n == pytest.approx(output, abs=0.5)


GOOD = "2024-05-10 00:00:05,9,7\n"
MOONCAKE = '{"timestamp": 5, "input_length": 9, "output_length": 7}\n'


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.csv", "", r"line 1: .*TIMESTAMP"),
        ("a.csv", HEADER, "the trace has no requests"),
        ("a.csv", "TIMESTAMP,GeneratedTokens\n", r"line 1: 'ContextTokens' is not in list"),
        ("a.csv", HEADER + GOOD + "2024-05-10 00:00:06,9\n", r"line 3: list index out of range"),
        ("a.csv", HEADER + "2024-05-10 00:00:06,-9,7\n", r"line 2: -9 prompt and 7 output tokens"),
        ("a.csv", HEADER + "2024-05-10 00:00:06,9,0\n", r"line 2: 9 prompt and 0 output tokens"),
        (
            "a.csv",
            HEADER + GOOD + "2024-05-10 00:00:04,9,7\n",
            r"line 3: its time is -1 s after.*mend or drop",
        ),
        ("a.csv", HEADER + "nan,9,7\n", r"line 2: Invalid isoformat"),
        (
            "a.csv",
            HEADER + f"2024-05-10 00:00:06,{2**63},7\n",
            r"line 2: 92233720368\d+ prompt and 7 output",
        ),
        ("a.csv", HEADER + "2024-05-10 00:00:06,nan,7\n", r"line 2: invalid literal"),
        ("a.csv", HEADER + "2024-05-10 00:00:06,1.5,7\n", r"line 2: invalid literal"),
        ("m.jsonl", "", "the trace has no requests"),
        ("m.jsonl", "{\n", r"line 1: "),
        ("m.jsonl", "[1]\n", r"line 1: it is no JSON object"),
        ("m.jsonl", MOONCAKE + MOONCAKE.replace(' "input_length": 9,', ""), r"line 2: no 'input_length'"),
        ("m.jsonl", MOONCAKE.replace("9", "-9"), r"line 1: -9 prompt"),
        ("m.jsonl", MOONCAKE.replace("9", "9.5"), r"line 1: 9.5 prompt"),
        ("m.jsonl", MOONCAKE.replace("9", "true"), r"line 1: True prompt"),
        ("m.jsonl", MOONCAKE + MOONCAKE.replace("5", "1e13"), r"line 2: its time is 1e\+10 s after.* nor above 1e\+09"),
        ("m.jsonl", MOONCAKE + MOONCAKE.replace("5", "1e400"), r"line 2: its time is inf"),
        ("m.jsonl", MOONCAKE.replace("5", "NaN"), r"line 1: its time is nan"),
        ("m.jsonl", MOONCAKE + MOONCAKE.replace("5", "4"), r"line 2: its time is -0.001 s"),
        ("m.jsonl", MOONCAKE.replace("5", '"5"'), r"line 1: unsupported operand"),
        ("m.jsonl", "[" * 100_000 + "\n", r"line 1: "),
        ("m.txt", MOONCAKE, r"'.txt' is neither"),
    ],
)
def test_a_broken_trace_is_refused_with_file_line_and_reason(tmp_path, name, text, message):
    path = written(tmp_path, name, text)
    with pytest.raises(BadTrace, match=message) as caught:
        list(read_trace(path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_what_came_before_the_broken_line_was_served(tmp_path):
    requests = read_azure(written(tmp_path, "a.csv", HEADER + GOOD + "x\n"))
    assert next(requests).num_prompt_tokens == 9
    with pytest.raises(BadTrace, match="line 3"):
        next(requests)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadTrace, match="cannot read"):
        list(read_azure(tmp_path / "a.csv"))


def test_a_line_of_2_gb_is_refused_in_bounded_memory(tmp_path):
    """A sparse file of zeros with no line end, read in a process that may not hold it."""
    path = tmp_path / "m.jsonl"
    with path.open("wb") as file:
        file.truncate(2 * 2**30)
    code = (
        "import resource; from pathlib import Path; from lab.sim.traces import BadTrace, read_trace\n"
        f"try: list(read_trace(Path({str(path)!r})))\n"
        "except BadTrace as error: print(error, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    limit = (2**29, 2**29)  # half a gigabyte of address space
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    assert f"line 1: it is longer than {MAX_LINE_BYTES:,} bytes" in done.stdout
