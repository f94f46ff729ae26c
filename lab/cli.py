"""`python -m lab`: the experiments of the book as commands.

Exit status: 0 all is well, 1 a check found a mismatch, 2 the input was wrong (one line says what). With `--json` the
last line of standard output is one JSON document.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from lab.commands import COMMANDS
from lab.core.errors import LabError

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    args = build_parser().parse_args(argv)
    command: Command = args.command
    try:
        return command(args)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="A minimal LLM inference runtime to learn from.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(subparsers)
    return parser
