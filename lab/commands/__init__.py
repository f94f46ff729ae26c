"""The commands of `python -m lab`: a module each, with its arguments (`add_to`) and what it does (`run`).

A module imports at its top the standard library and `lab.core` alone; the rest where it is used, so that a command
without a model starts without torch.
"""

from lab.commands import (
    calibrate,
    compare,
    conform,
    doctor,
    generate,
    ledger,
    prefill,
    record,
    simulate,
    streams,
    sweep,
    trace,
    tune,
    verify,
)

COMMANDS = (
    conform,
    prefill,
    generate,
    ledger,
    doctor,
    record,
    compare,
    streams,
    simulate,
    sweep,
    tune,
    calibrate,
    trace,
    verify,
)
