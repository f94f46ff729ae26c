"""Where a load can come from."""

import json

import pytest

from lab.core import ConfigError, LabError
from lab.sim.load import Load, read_load

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0,7,3\n2023-11-16 18:00:02.5,5,16\n"
MOONCAKE = """
{"timestamp": 0, "input_length": 7, "output_length": 3}
{"timestamp": 2500, "input_length": 5, "output_length": 16}
"""
SCENARIO = {"config": {"num_blocks": 9}, "clock": "seconds", "arrivals": [[2.5, "b", 5, 16, 0], [0, "a", 7, 3, 0]]}


@pytest.mark.parametrize("name, text", [("a.csv", AZURE), ("m.jsonl", MOONCAKE), ("s.jsonl", json.dumps(SCENARIO))])
def test_every_format_gives_the_same_load(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    load = read_load(str(tmp_path / name), 10)
    assert load == Load(((0.0, 7, 3), (2.5, 5, 16))) and load.rate == 0.4 and load.max_model_len == 21
    assert read_load(str(tmp_path / name), 1).shapes == load.shapes[:1]


def test_a_published_statistic_is_a_load_by_its_name():
    load = read_load("azure-conv", 400)
    assert len(load.shapes) == 400 and load == read_load("azure-conv", 400)
    assert 4 < load.rate < 7


def test_no_request_at_all_is_refused():
    with pytest.raises(ConfigError, match="number of requests is 0"):
        read_load("azure-conv", 0)
    with pytest.raises(LabError, match="neither"):
        read_load("azure", 1)


def test_more_requests_than_can_be_held_are_refused_before_they_are(monkeypatch):
    monkeypatch.setattr("lab.sim.load.MAX_REQUESTS", 10)
    assert len(read_load("azure-conv", 10).shapes) == 10
    with pytest.raises(ConfigError, match="azure-conv has more than 10 requests"):
        read_load("azure-conv", 10**15)
