"""The provenance of a record."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import torch

import lab
from lab.measure.environment import commit, environment, instructions


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(
        ["git", *identity, *args], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_environment_of_the_cpu() -> None:
    found = environment(torch.device("cpu"))
    assert json.loads(json.dumps(found)) == found
    assert found["device"] == found["cpu"] and found["capability"] is None and found["cuda"] is None
    assert found["threads"] == torch.get_num_threads()
    assert found["torch"] == torch.__version__ and found["lab"] == lab.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(found["date"]))


def test_environment_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        total_memory = 15 << 30

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    found = environment(torch.device("cuda", 0))
    assert (found["device"], found["capability"], found["cuda"]) == ("Tesla T4", "7.5", "12.8")
    assert found["memory_bytes"] == 15 << 30 and found["cpu"] != found["device"]


def test_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for bfloat16 are named if PyTorch finds them, and left out where it can't be asked."""
    vectors = torch.backends.cpu.get_cpu_capability()
    assert environment(torch.device("cpu"))["instructions"] == instructions()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "amx_bf16": True, "avx512_bf16": False})
    assert instructions() == f"{vectors} AMX_BF16"
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert instructions() == vectors


def test_commit(tmp_path: Path) -> None:
    package = tmp_path / "lab"
    package.mkdir()
    (package / "a.py").write_text("1")
    assert commit(package) is None  # outside git
    git(tmp_path, "init", "-q")
    assert commit(package) is None  # nothing committed yet
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "theirs")
    assert commit(package) is None  # a repository that does not hold the package
    git(tmp_path, "add", "lab")
    git(tmp_path, "commit", "-q", "-m", "ours")
    assert commit(package) == git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "record.json").write_text("1")
    git(tmp_path, "add", "data")
    assert commit(package) == git(tmp_path, "rev-parse", "HEAD")  # a record changes no code
    (package / "a.py").write_text("2")
    assert commit(package) == git(tmp_path, "rev-parse", "HEAD") + "+changes"


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() is None
