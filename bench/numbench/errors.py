"""The exceptions that a command reports in one line. Any other exception is a bug."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class NumbenchError(Exception):
    """The command failed; the message is one line for the user. Exit code 1."""

    exit_code = 1


class BadInput(NumbenchError):
    """Wrong use or unreadable input; the message says where and what to do. Exit code 2."""

    exit_code = 2


class MissingTask(BadInput):
    """A dataset or run has a task that no installed package provides."""


@contextmanager
def bad_input_at(location: object, *errors: type[Exception]) -> Iterator[None]:
    """Raise BadInput, which says where, in place of some errors."""
    try:
        yield
    except errors as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{location}: {reason}") from error


def printable(text: str, keeps: str = "") -> str:
    """Return `text` with non-printable characters escaped, safe to print in a terminal.

    keeps: characters that stay, such as line breaks.
    """
    return "".join(c if c.isprintable() or c in keeps else repr(c)[1:-1] for c in text)
