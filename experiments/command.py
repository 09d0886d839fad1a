"""How the commands of this package speak and end."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.errors import NumbenchError


def say(text: str) -> None:
    """One line for whoever looks on."""
    print(text, file=sys.stderr, flush=True)


def ending(work: Callable[[], int]) -> int:
    """The exit code of `work`; an error becomes one line and its code."""
    try:
        return work()
    except NumbenchError as error:
        say(f"experiments: {error}")
        return error.exit_code
    except OSError as error:
        say(f"experiments: {error.filename or 'input/output'}: {error.strerror or error}")
        return 1
