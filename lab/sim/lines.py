"""Files read line by line: a file of any size takes the memory of its longest line, and that has a limit."""

from collections.abc import Iterator
from pathlib import Path

from lab.core.errors import LabError


def read_lines(path: Path, most_bytes: int, error: type[LabError]) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank, without a byte order mark.

    Raises `error` for a file that cannot be read, a line of more than `most_bytes`, and bytes that are no UTF-8.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(most_bytes + 1):
                number += 1
                if len(line) > most_bytes:
                    raise error(f"{path} line {number}: it is longer than {most_bytes:,} bytes; is this the file?")
                text = line.decode("utf-8-sig").strip()
                if text:
                    yield number, text
    except UnicodeDecodeError as reason:
        raise error(f"{path} line {number}: {reason}; is this the file?") from None
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror}; give a file") from None
