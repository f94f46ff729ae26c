"""Agreement with vLLM's own scheduler, and that a disagreement of any kind is reported."""

import json
from pathlib import Path

import pytest

from lab.checks import conform as module
from lab.checks.conform import BadGoldenFile, conform

GOLDEN = Path(__file__).parent.parent / "golden" / "vllm-0.33.0-schedules.jsonl"


def test_all_golden_runs_agree_on_every_field_of_every_step():
    result = conform(GOLDEN)
    assert result.mismatches == ()
    assert (result.workloads, result.steps, result.preemptions) == (112, 17_401, 1_171)


@pytest.mark.parametrize("field", ["plan", "preempted", "finished", "free_blocks"])
def test_one_changed_value_is_reported_by_workload_step_and_field(field, tmp_path):
    workload = json.loads(GOLDEN.read_text().splitlines()[0])
    step = workload["steps"][5]
    step[field] = step[field] + 1 if field == "free_blocks" else [*step[field], "x"]
    path = tmp_path / "changed.jsonl"
    path.write_text(json.dumps(workload) + "\n")
    (mismatch,) = conform(path).mismatches
    assert (mismatch.workload, mismatch.step, mismatch.field) == ("0", 5, field)
    assert f"step 5 {field}" in str(mismatch)


def test_bad_files_are_named(tmp_path):
    with pytest.raises(BadGoldenFile, match="nowhere.jsonl"):
        conform(tmp_path / "nowhere.jsonl")
    for content, message in (("{", "line 1 is not JSON"), ("[1]", "not a JSON object"), ('{"seed": 3}', "workload 3")):
        path = tmp_path / "bad.jsonl"
        path.write_text(content)
        with pytest.raises(BadGoldenFile, match=message):
            module.conform(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "[" * 100_000,
        '{"seed": ' + "9" * 5000 + "}",
        '{"config": 5}',
        '{"config": {}, "arrivals": [[]], "steps": [{}]}',
    ],
)
def test_what_is_no_golden_file_is_named(tmp_path, text):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(BadGoldenFile, match="bad.jsonl"):
        conform(path)
