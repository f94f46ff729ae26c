"""`lab record`: run suites of experiments and keep what was measured."""

import argparse
import sys
from pathlib import Path

from lab.commands.common import Subparsers

SUITES = ("prefill", "memory", "cost", "roofline")


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("record", help="run suites of experiments and keep what was measured")
    suites = [*SUITES, "streams", "all"]
    parser.add_argument("--suite", choices=suites, default="prefill", help="which experiments (prefill)")
    parser.add_argument("--model", default="smollm2", help="as for the other commands (smollm2)")
    parser.add_argument("--device", help="cpu or cuda; the default is the GPU where there is one")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and prompts (0)")
    parser.add_argument("--out", type=Path, help="folder of the records (data/records)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """What has a record of the same parameters and environment is not run again: a run cut off goes on from there."""
    from tqdm import tqdm

    from lab.checks.suite import jobs, make_experiment, passed
    from lab.measure.environment import environment
    from lab.measure.records import ROOT, find, make_folder, path_of, save
    from lab.model.device import disable_tf32, resolve_device

    device, root = resolve_device(args.device), make_folder(args.out or ROOT)
    disable_tf32()
    every = [*SUITES, "streams"] if device.type == "cuda" else SUITES
    ok = True
    for job in tqdm(jobs(every if args.suite == "all" else [args.suite], device), unit="record", file=sys.stderr):
        experiment, here = make_experiment(job, args.model, device, args.seed), environment(device)
        record = find(experiment.name, experiment.parameters, here, root)
        done = "kept" if record else "measured"
        if record is None:
            record = experiment.record(here)
            save(record, root)
        good = passed(record)
        tqdm.write(f"{path_of(record, root)}: {done}, {len(record.rows)} rows, {'all match' if good else 'MISMATCH'}")
        ok = ok and good
    return int(not ok)
