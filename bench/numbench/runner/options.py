"""Options of a run: annotated fields that the command line, Python and suite files read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from inspect import getsource
from itertools import pairwise
from operator import ge, gt, le
from textwrap import dedent
from typing import Any, Literal, NamedTuple, get_args, get_origin

from numbench.core.arguments import convert
from numbench.errors import BadInput

Panel = Literal["Model", "Questions", "Sampling", "Limits", "Server", "Options"]
"""The headings of the options in the help of a command."""


class Option(NamedTuple):
    """What a field is as an option; its docstring, type and default say the rest.

    panel: its heading. metavar: what the help shows for the value. at_least, at_most, above:
    bounds. parse: returns the value for text; for a mapping, for the texts of the command line.
    is_swept: whether `numbench run` takes several values, separated by commas, each of which makes
    a run. is_setting: whether it is part of every request: it replaces the field of
    `RequestSettings` of its name, or without one is a parameter of the body (`sampling` there).
    is_recorded: whether `run.json` has it among its settings if it is not the default. Settings of
    `run.json` have to be the same when a run is resumed.
    """

    panel: Panel
    metavar: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    parse: Callable[[Any], object] | None = None
    is_swept: bool = False
    is_setting: bool = False
    is_recorded: bool = False

    def __repr__(self) -> str:
        """Return a short text for signatures."""
        return f"Option({self.metavar or ''})"


class OptionField(NamedTuple):
    """A field that is an option; `default` is `MISSING` if it has none."""

    name: str
    kind: Any
    default: Any
    option: Option

    @property
    def flag(self) -> str:
        """How the command line writes the option, such as `--max-cost`."""
        return option_name(self.name)

    @property
    def is_mapping(self) -> bool:
        """Whether the command line takes the option several times, once for each entry."""
        return get_origin(self.kind) is Mapping

    def convert(self, value: Any) -> Any:
        """Return the value of the option, which may be text as on the command line.

        Raises BadInput for a value of another type or out of range.
        """
        _, _, least, most, above, parse, *_ = self.option
        is_text = isinstance(value, str) and value.strip()
        if parse and (is_text or (self.is_mapping and isinstance(value, list | tuple))):
            value = parse(value)
        value = convert(self.flag, self.kind, value, is_secret=self.is_mapping)
        for bound, is_kept, words in (
            (least, ge, "{:,g} or more"),
            (most, le, "at most {:,g}"),
            (above, gt, "a number above {:g}"),
        ):
            if value is not None and bound is not None and not is_kept(value, bound):
                raise BadInput(f"{self.flag} {value:g}: give {words.format(bound)}")
        return value


def options_of(kind: Any) -> Iterator[OptionField]:
    """Yield the fields of a specification, or of its class, that are options, in their order."""
    for each in fields(kind):
        match get_args(each.type):
            case (annotated, Option() as option) if each.init:
                default = {} if each.default_factory is not MISSING else each.default
                yield OptionField(each.name, annotated, default, option)


def option_name(name: str) -> str:
    """Return how the command line writes the option of a field, such as `--max-cost`."""
    given = {"params": "param", "headers": "header"}.get(name, name)
    return f"--{given.replace('_', '-')}"


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a class, none if its source is not installed."""
    docs: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        try:
            (definition,) = ast.parse(dedent(getsource(each))).body
        except OSError:
            continue
        assert isinstance(definition, ast.ClassDef)
        for field, below in pairwise(definition.body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    docs[name] = " ".join(text.split())
    return docs
