"""Where and when a number was measured. A number without this is not a measurement anyone can compare with."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

import lab
from lab.model import device as dev

CODE = (":(top)", ":(top,exclude)data")  # of the repository


def environment(device: torch.device) -> dict[str, str | int | None]:
    """Provenance of a record, as JSON values; `capability`, `cuda` and `commit` are None where there is none."""
    capability = dev.capability(device)
    return {
        "device": dev.device_name(device),
        "capability": f"{capability[0]}.{capability[1]}" if capability else None,
        "memory_bytes": dev.total_memory(device),
        "cpu": dev.cpu_name(),
        "instructions": instructions(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": dev.cuda_version(device),
        "lab": lab.__version__,
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def instructions() -> str:
    """The CPU's that decide how fast it multiplies: "AVX2", "AVX512", "AVX512 AVX512_BF16 AMX_BF16".

    The name that a cloud gives its processors doesn't tell, and without the last two bfloat16 is emulated: a prefill
    takes longer in it than in float32. Where PyTorch has no `torch.cpu.get_capabilities`, the first stands alone.
    """
    has = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    bfloat16 = [name.upper() for name in ("avx512_bf16", "amx_bf16") if has.get(name)]
    return " ".join([torch.backends.cpu.get_cpu_capability(), *bfloat16])


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """Hash of the commit that `folder` is checked out at, with "+changes" if tracked files differ from it.

    Those in `data` don't count: a record that is written changes nothing of what measures the next one.
    None outside git, and where git knows nothing of the folder: lab installed inside somebody else's repository.
    """
    head = _git(folder, "log", "-1", "--format=%H", "--", ".") and _git(folder, "rev-parse", "HEAD")
    if not head:
        return None
    return head + ("+changes" if _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *CODE) else "")


def _git(folder: Path, *args: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
