"""What a record claims, computed again from its numbers: nothing is run, and no stored verdict is believed.

for problem in problems(load(path)):
    print(problem)

Each suite has a function that yields what does not hold, in one line each.
"""

from collections.abc import Callable
from itertools import chain

from lab.checks.claims import streams, times, values
from lab.checks.claims.common import Problems, amounts, conditions, provenance, timings, units
from lab.checks.rows import UNITS as suite_units
from lab.checks.streams import UNITS as stream_units
from lab.core.errors import LabError
from lab.measure.records import Record
from lab.model.device import DTYPES

CLAIMS: dict[str, Callable[[Record], Problems]] = {
    "prefill": values.prefill,
    "bits": values.bits,
    "memory": values.memory,
    "cost": times.cost,
    "roofline": times.roofline,
    "cap": values.cap,
    "gap": times.gap,
    "serving": times.serving,
    "streams": streams.streams,
}
SIGNED = ("error",)  # of a cost model: it takes too much or too little


def suite_of(record: Record) -> str:
    """The suite that made it, which calls it SUITE-DTYPE or streams-EXPERIMENT; "" for any other, as a cost model."""
    suite, _, setting = record.experiment.partition("-")
    return suite if suite == "streams" or setting in DTYPES else ""


def problems(record: Record) -> list[str]:
    """What does not hold. Empty for an experiment that is none of ours, as a log of somebody else's: no claims."""
    claims = CLAIMS.get(suite_of(record))
    if claims is None:
        return []
    found = list(provenance(record))
    if not record.rows:
        return [*found, "there are no rows"]
    try:
        for problem in chain(_common(record), claims(record)):
            found.append(problem)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, LabError) as error:
        found.append(f"a column or a parameter is missing or of another kind ({type(error).__name__}: {error})")
    return found


def _common(record: Record) -> Problems:
    """What holds of every suite; a stream program has no dtype, and the price of an edge comes out of a difference."""
    suite, _, dtype = record.experiment.partition("-")
    if suite == "streams":
        yield from units(record, stream_units)
    else:
        yield from chain(conditions(record, dtype), units(record, suite_units), amounts(record, SIGNED))
    yield from timings(record)
