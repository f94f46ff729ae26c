"""The reader's lines: which one calls, what stands in it, and what it gives a name."""

import ast
import contextlib
import functools
import linecache
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType

import torch

from lab.streams.model import ModelRuntime
from lab.streams.races import Line

OURS = (
    str(Path(torch.__file__).parent),
    str(Path(__file__).parents[1]),
    *ModelRuntime.own_files,
    *(str(module.__file__) for module in (contextlib, functools, weakref)),
)
LABEL_WIDTH = 60


def call(fn: Callable[[], object]) -> None:
    """Call the reader's function; where this is the innermost of its frames, none of its lines runs any more."""
    fn()


def reader_line() -> Line | None:
    """The innermost line that is neither PyTorch's nor the lab's; None while none runs."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not call.__code__:
        if not frame.f_code.co_filename.startswith(OURS):
            return Line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def raised_at(error: BaseException) -> Line | None:
    """The innermost of the reader's lines that an error went through."""
    frames = [(tb.tb_frame.f_code.co_filename, tb.tb_lineno) for tb in walk(error.__traceback__)]
    return next((Line(*frame) for frame in reversed(frames) if not frame[0].startswith(OURS)), None)


def walk(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def text(line: Line) -> str:
    return linecache.getline(line.file, line.number).strip()


def label(line: Line, otherwise: str) -> str:
    """The statement of a line, or what the operation is called where the source isn't there."""
    statement = text(line).split("  #")[0].rstrip(";")
    if len(statement) > LABEL_WIDTH:
        statement = statement[:LABEL_WIDTH] + "..."
    return statement or otherwise


def assigned_name(line: Line) -> str | None:
    """`x` of a line `x = ...`."""
    try:
        (statement,) = ast.parse(text(line)).body
    except (SyntaxError, ValueError):
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else None
