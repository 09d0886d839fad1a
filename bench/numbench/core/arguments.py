"""Arguments of commands, Python functions and suite files: one conversion, one wording."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from inspect import getdoc, signature
from pathlib import Path
from reprlib import Repr
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from numbench.errors import BadInput

P = ParamSpec("P")
T = TypeVar("T")

_WORDS = {bool: "true or false", float: "a number", int: "a whole number", Path: "a path"} | {
    str: "text", NoneType: "", Mapping: "a mapping", Callable: "a function"
}  # fmt: skip
_LISTS = (Sequence, Iterable, Collection)
_MISMATCH = (TypeError, ValueError, OverflowError)

_shown = Repr()
_shown.maxstring = _shown.maxother = 60


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that converts its arguments to their annotations.

    It raises BadInput for an argument that `convert` refuses.
    """
    parameters = signature(function)

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        bound = parameters.bind(*args, **options)
        for name, value in bound.arguments.items():
            bound.arguments[name] = convert(name, parameters.parameters[name].annotation, value)
        return function(*bound.args, **bound.kwargs)

    return call


def explained_arguments(function: Callable[..., Any]) -> dict[str, str]:
    """Return what a docstring says of arguments: its paragraphs that begin with `NAME: `."""
    paragraphs = (getdoc(function) or "").split("\n\n")
    matches = (re.fullmatch(r"(\w+): (.*)", " ".join(each.split())) for each in paragraphs)
    return {match[1]: match[2] for match in matches if match}


def convert(name: str, kind: Any, value: object, is_secret: bool = False) -> Any:
    """Return a value of the type `kind`, or what its text stands for.

    Numbers may be text, or of other libraries such as NumPy; lists become tuples. Raises BadInput,
    which repeats the value unless it may be a secret.
    """
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(each, str) and not each.strip() for each in values):
        raise BadInput(f"{name} is empty: give a value, or omit it")
    try:
        return _converted(kind, value)
    except _MISMATCH:
        shown = "" if is_secret else " " + " ".join(_shown.repr(value).split())
        raise BadInput(f"{name}{shown}: give {_expected(kind)}") from None


def _converted(kind: Any, value: Any) -> Any:
    """Return `value` as `kind`. Raises one of `_MISMATCH` if it is not of that type."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        for each in args:
            with suppress(*_MISMATCH):
                return _converted(each, value)
    if kind in (int, float) and not isinstance(value, bool):
        number = kind(value)
        if math.isfinite(number) and (isinstance(value, str) or number == value):
            return number
    if kind is Path:
        return Path(os.fspath(value))
    if origin in _LISTS and not isinstance(value, str | bytes | Mapping):
        return tuple(_converted(args[0], each) for each in value)
    if origin is tuple and len(value) == len(args):
        return tuple(map(_converted, args, value))
    if origin is Mapping and isinstance(value, Mapping):
        return {_converted(args[0], key): _converted(args[1], each) for key, each in value.items()}
    if origin is Literal and value in args:
        return value
    if origin is Callable and callable(value):
        return value
    if isinstance(kind, type) and kind not in (int, float) and isinstance(value, kind):
        return value
    raise TypeError


def _expected(kind: Any) -> str:
    """Return a type in words."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(filter(None, map(_expected, args))))
    if origin is Literal:
        return " or ".join(map(str, args))
    if origin is tuple:
        return " and ".join(map(_expected, args))
    return "a list" if origin in _LISTS else _WORDS.get(origin or kind, "a value")
