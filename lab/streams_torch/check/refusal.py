"""What can't be known without a GPU is refused with its name and line."""

from collections.abc import Callable
from typing import Any

from lab.core.errors import LabError
from lab.streams.races import Line
from lab.streams_torch.check.source import reader_line


class Unsupported(LabError, NotImplementedError):
    """Something that can't be followed without a GPU; from here on nothing is known of the program."""


def unsupported(what: str, instead: str = "leave it out of what is checked", line: Line | None = None) -> Unsupported:
    line = line or reader_line()
    return Unsupported(f"line {line.number if line else '?'}: {what} can't be followed without a GPU; {instead}")


class Unknown:
    """A number that would come from the device. It can be passed on and printed; whoever looks at it is told no."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return "?"

    def refuse(self, *args: object) -> Any:
        raise unsupported(f"the value of {self.what}", "check code that doesn't depend on it")

    def __format__(self, spec: str) -> str:
        return "?"

    def __eq__(self, other: object) -> bool:
        return bool(self.refuse())

    __hash__ = object.__hash__
    __bool__ = __int__ = __float__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = refuse


def refusal(what: str) -> Callable[..., Any]:
    def refuse(*args: object, **kwargs: object) -> Any:
        raise unsupported(what)

    return refuse
