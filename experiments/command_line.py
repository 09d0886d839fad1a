"""Messages and exit codes of the commands of this package."""

from __future__ import annotations

import sys
from collections.abc import Callable

from numbench.errors import NumbenchError


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
