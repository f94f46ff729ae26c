"""What a record claims, computed again from its numbers: nothing is run, and no stored verdict is believed.

for problem in problems(load(path)):
    print(problem)

Each suite has a function that yields what does not hold, in one line each.
"""

from collections.abc import Callable
from itertools import chain

from lab.checks.claims import streams, times, values
from lab.checks.claims.common import Problems, provenance, timings, units
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
    known = stream_units if suite_of(record) == "streams" else suite_units
    try:
        for problem in chain(units(record, known), timings(record), claims(record)):
            found.append(problem)
    except (ArithmeticError, LookupError, TypeError, ValueError, LabError) as error:
        found.append(f"a column or a parameter is missing or of another kind ({type(error).__name__}: {error})")
    return found
