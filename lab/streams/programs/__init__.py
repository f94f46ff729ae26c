"""The bug catalogue: small programs, each broken as it was broken in the open, and mended."""

from lab.core.errors import ConfigError
from lab.streams.catalogue import Program
from lab.streams.programs import blocks, events, handoff, host, lifetime, overlap

_ALL = (
    *handoff.PROGRAMS,
    *events.PROGRAMS,
    *blocks.PROGRAMS,
    *lifetime.PROGRAMS,
    *host.PROGRAMS,
    *overlap.PROGRAMS,
)

PROGRAMS: dict[str, Program] = {program.name: program for program in _ALL}


def find(name: str) -> Program:
    """The program of that name. Raises ConfigError if there is none."""
    if name not in PROGRAMS:
        raise ConfigError(f"no program {name!r}: choose from {', '.join(PROGRAMS)}")
    return PROGRAMS[name]
