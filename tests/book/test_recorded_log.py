"""The digest of a published run: percentiles and every fourth line, and no request of the file."""

import json
from pathlib import Path

import pytest

from lab.measure.records import dumps, load_all
from tools.recorded_log import EVERY, summarise

PUBLISHED = Path(__file__).parents[3] / "shared" / "traces" / "vllm-0.19-rtx4090"


@pytest.fixture
def folder(tmp_path):
    meta = {
        "model": "m",
        "vllm_version": "0.19.0",
        "started_at": "2026-08-20",
        "engine_kwargs": {"max_num_seqs": 8, "max_num_batched_tokens": 64},
        "kv_cache": {"num_gpu_blocks": 10, "block_size": 16, "gpu_memory_utilization": 0.9},
        "hardware": {
            "device_name": "G",
            "device_total_memory_bytes": 5,
            "torch_version": "2",
            "cuda_version": "12",
        },
    }
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    requests = [{"input_toks": i, "output_toks": 2 * i, "queued_ts": 100 + i / 4} for i in range(101)]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, requests)))
    lines = [f"{t}.0,0,0,{t},{2 * t},12.5" for t in range(9)]
    header = "t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct"
    (tmp_path / "timeseries.csv").write_text("\n".join([header, *lines]))
    return tmp_path


def test_what_is_kept_of_a_run(folder):
    record = summarise(folder)
    assert record.parameters["requests_per_s"] == 4.0 and record.parameters["num_requests"] == 101
    quantiles = dict(zip(record.parameters["percents"], record.parameters["prompt_tokens"], strict=True))
    assert (quantiles[0], quantiles[50], quantiles[99], quantiles[100]) == (0, 50, 99, 100)
    assert [(row["second"], row["running"], row["waiting"]) for row in record.rows] == [
        (t, t, 2 * t) for t in range(0, 9, EVERY)
    ]


def test_the_record_in_the_repository_is_the_digest_of_the_published_file():
    if not PUBLISHED.exists():
        pytest.skip(f"the published run is not here: {PUBLISHED}")
    (kept,) = load_all("vllm-log")
    assert dumps(kept) == dumps(summarise(PUBLISHED))
