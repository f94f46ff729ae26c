"""Sum up a published run of vLLM as a record: `python -m tools.recorded_log DIR`.

DIR is a run as LLMServingSim (casys-kaist/LLMServingSim, MIT) publishes it: `meta.json`, `timeseries.csv` with a line a
second, `requests.jsonl`. Kept are the limits of the run, the percentiles of its lengths, and every fourth line of the
log; no request of the file.
"""

import argparse
import csv
import json
from pathlib import Path

from lab.core.metrics import percentile
from lab.measure.records import Record, save

EVERY = 4  # seconds between two rows
PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 100)
SOURCE = "casys-kaist/LLMServingSim, MIT licence"


def summarise(folder: Path) -> Record:
    """The record of one run."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    lines = (folder / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    requests = [json.loads(line) for line in lines]
    with (folder / "timeseries.csv").open(encoding="utf-8") as file:
        log = list(csv.DictReader(file))[::EVERY]
    arrivals = sorted(request["queued_ts"] for request in requests)
    hardware = meta["hardware"]
    return Record(
        "vllm-log",
        {
            "model": meta["model"],
            **{name: meta["engine_kwargs"][name] for name in ("max_num_seqs", "max_num_batched_tokens")},
            **{name: meta["kv_cache"][name] for name in ("num_gpu_blocks", "block_size", "gpu_memory_utilization")},
            "gpu_memory_bytes": hardware["device_total_memory_bytes"],
            "num_requests": len(requests),
            "requests_per_s": round((len(requests) - 1) / (arrivals[-1] - arrivals[0]), 2),
            "percents": [0, *PERCENTS],
            "prompt_tokens": quantiles([request["input_toks"] for request in requests]),
            "output_tokens": quantiles([request["output_toks"] for request in requests]),
            "source": SOURCE,
        },
        [
            {
                "second": float(row["t"]),
                "running": int(row["running"]),
                "waiting": int(row["waiting"]),
                "kv_percent": float(row["kv_cache_pct"]),
            }
            for row in log
        ],
        {
            "device": hardware["device_name"],
            "vllm": meta["vllm_version"],
            "torch": hardware["torch_version"],
            "cuda": hardware["cuda_version"],
            "date": meta["started_at"],
        },
        {"running": "requests", "waiting": "requests", "kv_percent": "%"},
    )


def quantiles(lengths: list[int]) -> list[float]:
    """The shortest, and the nearest-rank percentiles."""
    return [min(lengths), *(percentile(lengths, q) for q in PERCENTS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    print("wrote", save(summarise(parser.parse_args().folder)))


if __name__ == "__main__":
    main()
