"""What the tests of `python -m lab simulate` share."""

import json

import pytest


@pytest.fixture
def simulate(lab):
    """The command on a file: its status, and its document or else what it says on standard error."""

    def simulate(path, *options):
        status, out, err = lab("simulate", str(path), "--json", *options)
        return (status, json.loads(out.splitlines()[-1])) if status == 0 else (status, err)

    return simulate
