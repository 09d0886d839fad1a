"""Messages and exit codes of the commands of this package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from numbench.errors import NumbenchError
from numbench.jsonl import write_atomically


def print_message(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)


def run_command(command: Callable[[], int]) -> int:
    """Return the exit code of `command`; an error is printed as one line and gives its code."""
    try:
        return command()
    except NumbenchError as error:
        print_message(f"experiments: {error}")
        return error.exit_code
    except OSError as error:
        print_message(f"experiments: {error.filename or 'input/output'}: {error.strerror or error}")
        return 1


def write_pages(
    module: str,
    description: str | None,
    render: Callable[[Path], Mapping[str, bytes]],
    folder: Path,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the command `python -m MODULE [--out FOLDER]`, and return its exit code.

    render: returns the content of every file to write to a folder, by name. folder: the default.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--out", type=Path, default=folder, help="default: %(default)s")
    out = parser.parse_args(arguments).out

    def write() -> int:
        for name, data in render(out).items():
            write_atomically(out / name, data)
            print(out / name)
        return 0

    return run_command(write)
