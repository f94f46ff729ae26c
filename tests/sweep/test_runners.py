"""The same rows whoever runs the trials: one process, several, or a cluster that loses a worker on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client, default_client

from lab.core import CacheConfig, ConfigError
from lab.sim.cost_model import LinearCost
from lab.sim.load import Load
from lab.sim.stability import Criteria
from lab.sim.trial import Trial, judge_all, run_trial
from lab.sweep import ClusterError, grid, on_cluster, on_processes, runners, table_row

LOAD = Load(tuple((i / 9, 20 + i % 50, 10 + i % 7) for i in range(60)))
TRIALS = [
    Trial(setting, LOAD, LinearCost(), speed)
    for setting in grid((1, 4, 16), (16, 64), lambda config: CacheConfig(40))
    for speed in (1.0, 40.0)
]


@pytest.fixture(scope="module")
def expected():
    return [run_trial(trial) for trial in TRIALS]


def test_a_grid_is_every_combination_that_is_a_config():
    settings = grid((8, 32), (16, 64), lambda config: CacheConfig(1000 - config.max_num_batched_tokens))
    knobs = [(s.config.max_num_seqs, s.config.max_num_batched_tokens, s.cache.num_blocks) for s in settings]
    assert knobs == [(8, 16, 984), (8, 64, 936), (32, 64, 936)]


def test_rows_name_knobs_and_verdict(expected):
    rows = [table_row(*pair) for pair in zip(expected, judge_all(expected, Criteria()), strict=True)]
    assert {row["verdict"] for row in rows} >= {"stable", "thrash", "under-used"}
    assert rows[0]["max_num_seqs"] == 1 and rows[0]["kv_blocks"] == 40 and rows[1]["speed"] == 40.0
    assert all((row["verdict"] == "stable") == (row["because"] == "") for row in rows)


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_change_nothing(expected, jobs):
    assert on_processes(jobs)(TRIALS) == expected


def test_no_process_at_all_is_refused():
    with pytest.raises(ConfigError, match="jobs is 0"):
        on_processes(0)


# -- a real scheduler and two workers, each a process ------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a scheduler on a free port; it and its workers end with the tests."""
    tmp_path = tmp_path_factory.mktemp("dask")
    file = tmp_path / "scheduler.json"
    scheduler = ["--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    worker = ["--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    processes = [start("scheduler", *scheduler, log=tmp_path), *(start("worker", *worker, log=tmp_path) for _ in "12")]
    try:
        yield "dask://" + address_in(file, scheduler=processes[0])
    finally:
        for process in processes:
            process.kill()
            process.wait()


def start(role: str, *options: str, log: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "dask", role, *options]
    with open(log / "log.txt", "a") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, cwd=Path(__file__).parents[2])


def address_in(file: Path, scheduler: subprocess.Popen) -> str:
    while not file.exists() or not file.read_text():
        assert scheduler.poll() is None, (file.parent / "log.txt").read_text()
        time.sleep(0.05)
    return json.loads(file.read_text())["address"].removeprefix("tcp://")


def test_a_trial_that_fails_on_a_worker_fails_here(cluster):
    broken = replace(TRIALS[0], setting=replace(TRIALS[0].setting, policy="none"))
    with pytest.raises(KeyError, match="none"):
        on_cluster(cluster)([TRIALS[1], broken])


def test_a_cluster_that_loses_a_worker_loses_nothing(cluster, expected, monkeypatch):
    """The worker is killed with SIGKILL while it holds results that nobody has fetched yet."""
    lost = []

    def kill_one(futures, **_):
        for number, future in enumerate(futures):
            if number == 2:
                client = default_client()
                pids, held = client.run(os.getpid), client.has_what()
                victim = next(address for address, keys in held.items() if keys)
                os.kill(pids[victim], signal.SIGKILL)
                lost.extend(held[victim])
            yield future

    with Client(cluster.replace("dask", "tcp"), timeout=30) as client:
        client.wait_for_workers(2, timeout=60)
    monkeypatch.setattr(runners, "tqdm", kill_one)
    assert on_cluster(cluster)(TRIALS) == expected
    assert lost


@pytest.mark.parametrize("address", ["host:8786", "dask://host", "dask://", "tcp://host:1", "dask://a b:1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ConfigError, match="write it like dask://host:8786"):
        on_cluster(address)


def test_a_cluster_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr(runners, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match="cannot use dask://127.0.0.1:9: .*is its scheduler there") as error:
        on_cluster("dask://127.0.0.1:9")(TRIALS)
    assert "\n" not in str(error.value)
