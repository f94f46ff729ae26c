"""How a program of the catalogue says what is to be expected of it, on whatever backend it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lab.core.errors import ConfigError
from lab.streams.races import Kind
from lab.streams.runtime import ITEM_BYTES, Runtime

N = 2**18  # elements of a tensor where its size doesn't matter: 1 MiB
LONG = 400.0  # microseconds of a kernel that is surely still running when the host has enqueued the next


@dataclass(frozen=True)
class Variant:
    """One way to write a program, and what must come of it.

    `right` says whether it returns what was wanted; None where that is luck, so that no backend can be held to it.
    `error` is the rule of graph capture that it breaks.
    """

    name: str
    run: Callable[[Runtime], float]
    want: float
    hazards: frozenset[Kind] = frozenset()
    right: bool | None = True
    device_copies: int = 0
    device_bytes: int = 0
    error: str | None = None


@dataclass(frozen=True)
class Program:
    """`title` and its `source` (public reports of the bug) go with every variant."""

    name: str
    zh: str
    en: str
    source: str
    variants: tuple[Variant, ...]

    def variant(self, name: str) -> Variant:
        """Raises ConfigError if there is none of that name."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        names = ", ".join(variant.name for variant in self.variants)
        raise ConfigError(f"{self.name} has no variant {name!r}: choose from {names}")


@dataclass(frozen=True)
class Case:
    """A variant before its program is known: the options that the program's function is called with."""

    name: str
    options: dict[str, object]
    hazards: tuple[Kind, ...] = ()
    right: bool | None = True
    copies: int = 0
    error: str | None = None
    want: float | None = None


def sound(name: str, *, copies: int = 0, want: float | None = None, **options: object) -> Case:
    """A variant without a hazard; `copies` device copies of N elements."""
    return Case(name, options, copies=copies, want=want)


def broken(name: str, *hazards: Kind, right: bool | None = False, copies: int = 0, **options: object) -> Case:
    return Case(name, options, hazards, right, copies)


def refused(name: str, rule: str, **options: object) -> Case:
    """A variant that CUDA refuses to capture."""
    return Case(name, options, right=False, error=rule)


def program(function: Callable[..., float], want: float, *cases: Case, zh: str, en: str, source: str = "") -> Program:
    """A program of the catalogue, named as its function, which is called with the runtime and a case's options."""
    variants = tuple(
        Variant(
            name=case.name,
            run=partial(function, **case.options),
            want=want if case.want is None else case.want,
            hazards=frozenset(case.hazards),
            right=case.right,
            device_copies=case.copies,
            device_bytes=case.copies * N * ITEM_BYTES,
            error=case.error,
        )
        for case in cases
    )
    return Program(function.__name__, zh, en, source, variants)
