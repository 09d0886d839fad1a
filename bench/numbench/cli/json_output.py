"""The output of `--json`: the typed result of a command as one JSON object on stdout."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from numbench._version import __version__

SCHEMA = 1
"""The version of the output. Fields may be added to it; one with another meaning raises it."""

T = TypeVar("T")

_RESULT: ContextVar[object] = ContextVar("result", default=None)


def set_result(value: T) -> T:
    """Return `value`, and make it the result of the command."""
    _RESULT.set(value)
    return value


@contextmanager
def json_on_stdout(command: str, is_wanted: bool) -> Iterator[Callable[[int, str | None], None]]:
    """Redirect stdout to stderr; yield a function that prints exit code, error and result.

    If JSON is not wanted, do neither.
    """
    stdout = sys.stdout
    if not is_wanted:
        yield lambda exit_code, error: None
        return

    def finish(exit_code: int, error: str | None) -> None:
        output = {
            "schema": SCHEMA,
            "numbench": __version__,
            "command": command,
            "exit_code": exit_code,
            "error": error,
            "result": plain(_RESULT.get()),
        }
        print(json.dumps(output, ensure_ascii=False, allow_nan=False), file=stdout, flush=True)

    _RESULT.set(None)
    with redirect_stdout(sys.stderr):
        yield finish


def plain(value: object) -> object:
    """Return a result as JSON values.

    Records become objects of their fields and properties, unknown numbers null, paths text.
    """
    if names := field_names(type(value)):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence | Set) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.as_posix() if isinstance(value, Path) else value


def field_names(kind: type) -> list[str]:
    """Return the fields and the public properties of a class of records; none for other classes."""
    if issubclass(kind, msgspec.Struct):
        names = list(kind.__struct_fields__)
    elif is_dataclass(kind):
        names = [each.name for each in fields(kind)]
    else:
        names = list(getattr(kind, "_fields", ()))
    properties = [name for name, each in vars(kind).items() if isinstance(each, property)]
    return [*names, *(name for name in properties if name[0] != "_")] if names else []
