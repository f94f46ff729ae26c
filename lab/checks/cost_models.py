"""Fitted cost models on disk: records in `data/cost-models/<device>-<model>-<dtype>.json`.

The cost is among the parameters, with its error over the steps that it was fitted to; the rows are the loads that it
predicted beside the engine.
"""

from dataclasses import asdict
from pathlib import Path

from lab.checks.calibrate import Calibration, EngineMachine
from lab.checks.confirm import METRICS, Effort, Point
from lab.measure.environment import environment
from lab.measure.records import DATA, Record, Row, slug, write
from lab.model.device import dtype_name
from lab.model.weights import LoadedModel

ROOT = DATA / "cost-models"
EXPERIMENT = "cost-model"
UNITS = {name: "ms" if name.endswith("_ms") else "tokens/s" for name in METRICS}


def cost_model_record(
    model: LoadedModel, machine: EngineMachine, calibration: Calibration, points: list[Point], effort: Effort
) -> Record:
    parameters = {
        "model": model.name,
        "source": Path(model.source).name,  # where it lies is this machine's own affair
        "dtype": dtype_name(model.decoder.dtype),
        "attention": machine.attention.name,
        "clock": machine.clock,
        "cost": asdict(calibration.cost),
        "repeats": effort.repeats,
        "requests": effort.requests,
        "fitted_steps": len(calibration.steps),
        "step_error_p50": calibration.error(50),
        "step_error_p90": calibration.error(90),
        "total_error": calibration.total_error,
    }
    units = UNITS | {f"{name}_predicted": unit for name, unit in UNITS.items()} | {"verdicts": "of each run"}
    return Record(EXPERIMENT, parameters, [_row(p) for p in points], environment(model.decoder.device), units)


def save_cost_model(record: Record, root: Path = ROOT) -> Path:
    """Write the record where its device, model and dtype say. Returns the path."""
    return write(record, path_of(record, root))


def path_of(record: Record, root: Path = ROOT) -> Path:
    names = record.environment["device"], record.parameters.get("model"), record.parameters.get("dtype")
    return root / f"{slug('-'.join(map(str, names)))}.json"


def _row(point: Point) -> Row:
    return {
        "num_blocks": point.num_blocks,
        "rho": point.rho,
        "requests_per_s": point.rate,
        **point.measured,
        **{f"{name}_predicted": value for name, value in point.predicted.items()},
        "predicted_verdict": point.predicted_verdict.value,
        "verdicts": [verdict.value for verdict in point.verdicts],
    }
