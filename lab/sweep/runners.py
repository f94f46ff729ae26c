"""Where trials run."""

import re
from collections.abc import Sequence

from joblib import Parallel, delayed  # type: ignore[import-untyped]
from tqdm import tqdm

from lab.core.errors import ConfigError, LabError
from lab.sim.trial import Outcome, Trial, run_trial
from lab.sim.tune import RunAll

CONNECT_SECONDS = 10


class ClusterError(LabError, RuntimeError):
    """A Dask cluster that can't be used, or that did not do the work."""


def on_processes(jobs: int = -1, *, progress: bool = False) -> RunAll:
    """Processes of this machine, by joblib; -1 is one for each core. Raises ConfigError for 0."""
    if jobs == 0:
        raise ConfigError("jobs is 0; give the number of processes, or -1 for one for each core")

    def run_all(trials: Sequence[Trial]) -> list[Outcome]:
        outcomes = Parallel(jobs, return_as="generator")(delayed(run_trial)(trial) for trial in trials)
        return list(tqdm(outcomes, total=len(trials), disable=not progress, leave=False))

    return run_all


def on_cluster(address: str, *, progress: bool = False) -> RunAll:
    """The workers of a running Dask cluster, which must have lab; `address` is "dask://host:port", its scheduler's.

    What a dying worker leaves undone, or takes with it, the scheduler has another one run. Raises ClusterError, when it
    is called, if there is no such cluster or it has no worker, and for a trial that four workers died of.
    """
    if not (match := re.fullmatch(r"dask://([^/\s]+:\d+)", address)):
        raise ConfigError(f"cluster {address!r} is no Dask scheduler; write it like dask://host:8786")
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError:
        raise ClusterError("a cluster needs distributed, which is not installed; pip install distributed") from None

    def run_all(trials: Sequence[Trial]) -> list[Outcome]:
        try:
            with Client(f"tcp://{match[1]}", timeout=CONNECT_SECONDS) as client:
                client.wait_for_workers(1, CONNECT_SECONDS)
                futures = client.map(run_trial, trials, pure=False)
                for _ in tqdm(as_completed(futures), total=len(trials), disable=not progress, leave=False):
                    pass
                return client.gather(futures)
        except KilledWorker as error:
            raise ClusterError(f"a trial was lost with every worker that ran it: {error}") from None
        except ModuleNotFoundError as error:
            raise ClusterError(f"the workers of {address} lack a module ({error}); install lab there too") from None
        except OSError as error:  # distributed's timeouts are OSErrors too
            raise ClusterError(f"cannot use {address}: {error}; is its scheduler there, with a worker?") from None

    return run_all
