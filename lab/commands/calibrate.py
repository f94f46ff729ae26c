"""`lab calibrate`: measure what engine steps take, fit a cost model, hold the simulator against the engine."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.commands.common import Subparsers, add_weights_arguments, aligned, load_model, print_json

if TYPE_CHECKING:
    from lab.checks.confirm import Point


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("calibrate", help="a cost model from measured steps, and the simulator's error")
    add_weights_arguments(parser)
    parser.add_argument("--requests", type=int, default=100, help="of each load that is predicted and run (100)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of the steps and of each load (3)")
    parser.add_argument("--seconds", type=float, default=120, help="measure less if it would take longer (about 120)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the fit goes (data/cost-models)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.checks.calibrate import EngineMachine
    from lab.checks.confirm import calibrate
    from lab.checks.cost_models import ROOT, cost_model_record, save_cost_model
    from lab.measure.records import make_folder
    from lab.measure.steps import backend_of

    folder = make_folder(args.out or ROOT)
    model = load_model(args)
    machine = EngineMachine(model.decoder, backend_of(model.decoder, args.attention))
    calibration, points, effort = calibrate(
        machine, num_requests=args.requests, repeats=args.repeats, seconds=args.seconds
    )
    record = cost_model_record(model, machine, calibration, points, effort)
    path = save_cost_model(record, folder)
    cost = ", ".join(
        f"{name.removesuffix('_s')} {seconds * 1e6:.3g}" for name, seconds in vars(calibration.cost).items()
    )
    print(f"{model.name} on {record.environment['device']}, {machine.clock} time; microseconds of each: {cost}")
    print(
        f"fitted to {len(calibration.steps)} steps: error of a step p50 {calibration.error(50):.1%}, "
        f"p90 {calibration.error(90):.1%}, of all together {calibration.total_error:+.1%}"
    )
    print(f"loads of {effort.requests} requests beside the engine, {effort.repeats} times; and the prediction's error:")
    print(points_table(points))
    print(f"kept in {path}")
    if args.json:
        print_json({"path": str(path), "parameters": record.parameters, "rows": record.rows})
    return 0


def points_table(points: "Sequence[Point]") -> str:
    from lab.checks.confirm import METRICS

    lines = [["rho", "blocks", "requests/s", *METRICS, "predicted", "verdicts"]]
    for point in points:
        numbers = [f"{point.measured[name]:.3g} {point.error(name):+.1%}" for name in METRICS]
        verdicts = "/".join(verdict.value for verdict in point.verdicts)
        place = [f"{point.rho:g}", str(point.num_blocks), f"{point.rate:.3g}"]
        lines.append([*place, *numbers, point.predicted_verdict.value, verdicts])
    return aligned(lines)
