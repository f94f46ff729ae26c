"""`python -m lab streams` on its other backends."""

import json

from lab.cli import main


def test_on_threads(capsys, tmp_path):
    path = tmp_path / "lanes.svg"
    assert main(["streams", "war", "--backend", "threads", "--picture", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert document["backend"] == "threads" and all(row["as_expected"] for row in document["variants"])
    values = {row["variant"]: row["value"] for row in document["variants"]}
    assert values == {"broken": 8, "wait": 2, "second-buffer": 2, "copy-out": 2}
    assert path.read_text(encoding="utf-8").startswith("<svg ")


def test_cuda_needs_a_gpu_and_draws_nothing(capsys):
    assert main(["streams", "raw", "--backend", "cuda", "--picture", "lanes.svg"]) == 2
    assert "--picture draws host and memory too, which CUDA doesn't tell" in capsys.readouterr().err
    assert main(["streams", "raw", "--backend", "cuda"]) == 2
    assert "PyTorch sees no CUDA device" in capsys.readouterr().err
