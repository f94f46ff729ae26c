"""How long the threads of PyTorch spin is set before torch is there to read it, unless the reader has set it."""

import json
import os
import subprocess
import sys

import pytest

NAMES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
PROGRAM = "import json, lab, os, sys; print(json.dumps([dict(os.environ), 'torch' in sys.modules]))"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ("PASSIVE", "10000")),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, ("ACTIVE", None)),
        ({"GOMP_SPINCOUNT": "7"}, (None, "7")),
    ],
)
def test_threads_spin_for_a_while(given: dict[str, str], found: tuple[str | None, str | None]) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in NAMES} | given
    answer = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True)
    variables, has_torch = json.loads(answer.stdout)
    assert tuple(map(variables.get, NAMES)) == found and not has_torch
