"""`lab record`: run suites of experiments and keep what was measured."""

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lab.commands.common import Subparsers

if TYPE_CHECKING:
    import torch

SUITES = ("prefill", "bits", "memory", "cost", "roofline", "cap", "gap", "serving")


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("record", help="run suites of experiments and keep what was measured")
    suites = [*SUITES, "streams", "all"]
    parser.add_argument("--suite", choices=suites, default="prefill", help="which experiments (prefill)")
    parser.add_argument("--model", help="as for the other commands; without it one of random weights for the device")
    parser.add_argument("--device", help="cpu or cuda; the default is the GPU where there is one")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and prompts (0)")
    parser.add_argument("--out", type=Path, help="folder of the records (data/records)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """What has a record of the same parameters and environment is not run again: a run cut off goes on from there."""
    from tqdm import tqdm

    from lab.checks.suite import SECONDS, jobs
    from lab.measure.records import ROOT, make_folder
    from lab.model.device import disable_tf32, resolve_device

    device, root = resolve_device(args.device), make_folder(args.out or ROOT)
    disable_tf32()
    every = [*SUITES, "streams"] if device.type == "cuda" else SUITES
    todo = jobs(every if args.suite == "all" else [args.suite], device)
    seconds = sum(SECONDS[suite] for suite, _ in todo)
    print(f"{len(todo)} records into {root}; a prediction for a T4: {seconds} s")
    ok = True
    with tqdm(total=seconds, unit="s", file=sys.stderr, bar_format="{desc}{percentage:3.0f}%|{bar}| {elapsed}") as bar:
        for suite, setting in todo:
            bar.set_description(f"{suite} {setting}")
            ok &= record_one((suite, setting), args.model, device, args.seed, root, tqdm.write)
            bar.update(SECONDS[suite])
    return int(not ok)


def record_one(
    job: tuple[str, str], model: str | None, device: "torch.device", seed: int, root: Path, say: Callable[[str], None]
) -> bool:
    """Measure what is not there yet. Does everything hold that the record claims?"""
    from lab.checks.claims import problems
    from lab.checks.suite import make_experiment
    from lab.measure.environment import environment
    from lab.measure.records import find, path_of, save
    from lab.model.device import empty_cache

    experiment, here = make_experiment(job, model, device, seed), environment(device)
    record = find(experiment.name, experiment.parameters, here, root)
    done = "kept" if record else "measured"
    if record is None:
        record = experiment.record(here)
        save(record, root)
    found = problems(record)
    say(f"{path_of(record, root)}: {done}, {len(record.rows)} rows, {'all claims hold' if not found else 'MISMATCH'}")
    for problem in found:
        say(f"  {problem}")
    del experiment, record
    if device.type == "cuda":
        gc.collect()  # runs hold themselves in cycles, and the next experiment needs their memory
        empty_cache(device)
    return not found
