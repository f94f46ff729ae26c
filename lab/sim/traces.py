"""Traces of real services as they are published, read line by line: a week of requests takes the memory of one."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lab.core.errors import LabError
from lab.core.request import Request, SamplingParams
from lab.sim.lines import read_lines

MAX_LINE_BYTES = 2**20  # far above any line of these formats
MAX_TIME = 1e9  # 30 years of seconds, which a float still tells apart by less than a microsecond
MAX_TOKENS = 2**40  # a length beyond any pool, and so refused, but still one that Python can count
Row = tuple[float, int, int]  # seconds, prompt tokens, output tokens


class BadTrace(LabError, ValueError):
    """A trace file that is not in its format; the message names file, line and reason."""


def read_azure(path: Path) -> Iterator[Request]:
    """Azure's LLM inference traces of 2023 and 2024 (Azure Public Dataset): CSV with a header.

    Columns TIMESTAMP (date and time, in UTC unless it says otherwise), ContextTokens, GeneratedTokens, in any order,
    others ignored.
    """
    lines = read_lines(path, MAX_LINE_BYTES, BadTrace)
    number, header = next(lines, (1, ""))
    names = [name.strip() for name in header.split(",")]
    try:
        columns = [names.index(name) for name in ("TIMESTAMP", "ContextTokens", "GeneratedTokens")]
    except ValueError as error:
        raise BadTrace(f"{path} line {number}: {error} of columns; Azure's header is needed") from None

    def parse(line: str) -> Row:
        cells = line.split(",")
        stamp, prompt, output = (cells[column].strip() for column in columns)
        time = datetime.fromisoformat(stamp)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp(), int(prompt), int(output)

    return _requests(path, lines, parse)


def read_mooncake(path: Path) -> Iterator[Request]:
    """Mooncake's traces: a JSON object a line with `timestamp` in ms, `input_length`, `output_length`.

    Its hashes of prefix blocks are ignored: there is no prefix cache here.
    """

    def parse(line: str) -> Row:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError("it is no JSON object")
        return row["timestamp"] / 1e3, row["input_length"], row["output_length"]

    return _requests(path, read_lines(path, MAX_LINE_BYTES, BadTrace), parse)


def read_trace(path: Path) -> Iterator[Request]:
    """By the file's name: `.csv` as Azure's, `.jsonl` as Mooncake's."""
    readers = {".csv": read_azure, ".jsonl": read_mooncake}
    if path.suffix not in readers:
        raise BadTrace(f"{path}: a trace is Azure's .csv or Mooncake's .jsonl; {path.suffix!r} is neither")
    return readers[path.suffix](path)


def is_trace(path: Path) -> bool:
    """Is it a trace, and no load as `lab.sim.scenario` has them? By its name, and a `.jsonl` by its first line."""
    if path.suffix != ".jsonl":
        return path.suffix == ".csv"
    try:
        with path.open("rb") as file:
            lines = iter(partial(file.readline, MAX_LINE_BYTES), b"")
            return b'"input_length"' in next(filter(bytes.strip, lines), b"")
    except OSError:
        return False


def _requests(path: Path, lines: Iterator[tuple[int, str]], parse: Callable[[str], Row]) -> Iterator[Request]:
    """Requests, timed from the first. Equal times are legal, since stamps are rounded; going back in time is not."""
    zero, last = None, 0.0
    for number, line in lines:
        try:
            time, prompt, output = parse(line)
            zero = time if zero is None else zero
            arrival = time - zero
            if any(type(n) is not int or not 1 <= n <= MAX_TOKENS for n in (prompt, output)):
                raise ValueError(
                    f"{prompt} prompt and {output} output tokens; both must be whole numbers from 1 to {MAX_TOKENS}"
                )
            if not last <= arrival <= MAX_TIME:  # NaN too
                raise ValueError(
                    f"its time is {arrival:.6g} s after the first, the one before {last:.6g} s; it must be neither "
                    f"before that nor above {MAX_TIME:g}"
                )
            request = Request(f"line-{number}", range(prompt), SamplingParams(output), arrival=arrival)
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else error
            raise BadTrace(f"{path} line {number}: {reason!s:.200}; mend or drop the line") from None
        last = arrival
        yield request
    if zero is None:
        raise BadTrace(f"{path}: the trace has no requests after its header, if it needs one; give the whole file")
