"""`lab sweep`: the map of the stable region over settings, pools and loads."""

import argparse

from lab.commands.common import Subparsers, print_json
from lab.commands.serving import (
    add_serving_arguments,
    choose_budget,
    choose_cost,
    choose_runner,
    choose_settings,
    read_criteria,
    rows_table,
)


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("sweep", help="the map of stable, queue-bound, thrashing ... settings under a load")
    add_serving_arguments(parser)
    parser.add_argument("--speeds", type=float_list, default=[1.0], help="times the load's own rate, like 0.5,1,2 (1)")
    parser.set_defaults(command=run)


def float_list(text: str) -> list[float]:
    try:
        speeds = [float(part) for part in text.split(",")]
    except ValueError:
        speeds = []
    if not speeds or not all(0 < speed < float("inf") for speed in speeds):
        raise argparse.ArgumentTypeError(f"{text!r} is not a comma-separated list of numbers above 0")
    return speeds


def run(args: argparse.Namespace) -> int:
    from lab.sim.load import read_load
    from lab.sim.trial import Trial, judge_all
    from lab.sweep import table_row

    criteria = read_criteria(args)
    load, cost = read_load(args.trace, args.requests), choose_cost(args)
    settings = choose_settings(args, load, choose_budget(args, load))
    trials = [Trial(setting, load, cost, speed, criteria.slo) for speed in args.speeds for setting in settings]
    outcomes = choose_runner(args)(trials)
    rows = [table_row(*pair) for pair in zip(outcomes, judge_all(outcomes, criteria), strict=True)]
    print(rows_table(rows))
    if args.json:
        print_json({"trace": args.trace, "requests": len(load.shapes), "rows": rows})
    return 0
