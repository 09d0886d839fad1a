"""Commands made of functions and run specifications, and the output helpers they share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import MISSING, Field
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from numbench.errors import BadInput, printable
from numbench.runner.spec import (
    Help,
    Panel,
    RunSpec,
    help_of,
    listed_values,
    option_name,
    options_of,
    split_help,
    type_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class CommandWithPanels(TyperCommand):
    """A command whose help shows the options under the headings of their panels."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as `OLD [NEW]`, without typer's braces."""
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a list of options for each panel."""
        records = []
        for each in self.get_params(ctx):
            name, text = each.get_help_record(ctx) or ("", "")
            name = name.partition(" <")[0] if each.param_type_name == "argument" else name
            records.append((getattr(each, "rich_help_panel", None) or "Options", (name, text)))
        _write_sections(formatter, get_args(Panel), records)


class CommandGroups(TyperGroup):
    """A program whose help shows the commands under the headings of their groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list of commands for each group."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        records = [
            (
                getattr(each, "rich_help_panel", None) or "Commands",
                (name, each.get_short_help_str(80)),
            )
            for name, each in commands
            if each
        ]
        _write_sections(formatter, dict.fromkeys(panel for panel, _ in records), records)


def _write_sections(formatter: Any, panels: Any, records: Any) -> None:
    for panel in panels:
        if rows := [record for of_panel, record in records if of_panel == panel and record[0]]:
            with formatter.section(panel):
                formatter.write_dl(rows)


def command(
    function: Callable[..., None],
    kind: type[RunSpec] | None = None,
    omit: Container[str] = (),
    defaults: Mapping[str, object] | None = None,
    takes_lists: bool = False,
) -> Callable[..., None]:
    """Return `function` as a command for typer.

    Its positional parameters are arguments and its keyword-only ones options, with the help of the
    section "Options" of its docstring. With `kind`, it also has an option for each field of that
    specification but `omit`, whose values it receives as further keyword arguments. defaults:
    instead of those of the specification. takes_lists: whether options may have several values,
    of which each makes a run.
    """
    text, helps = split_help(function)
    # What the function itself says of an option comes first.
    helps = (help_of(kind) if kind else {}) | helps
    parameters = [
        _parameter(each, helps[each.name])
        for each in signature(function, eval_str=True).parameters.values()
        if each.kind is not Parameter.VAR_KEYWORD
    ]
    for each in options_of(kind) if kind else ():
        if each.metadata["is_swept"] and takes_lists:
            sentence, *ending = re.split(r"(?= \[default)", helps[each.name].text)
            several = "".join((sentence, " Several: one run each.", *ending))
            helps[each.name] = Help(f"{helps[each.name].metavar},…", several)
        if each.name not in omit:
            default = (defaults or {}).get(each.name, _default(each))
            parameters.append(_parameter_of_field(each, helps[each.name], default))

    @wraps(function)
    def called(**values: Any) -> None:
        arguments = [values.pop(each.name) for each in parameters if _is_argument(each)]
        function(*arguments, **values)

    called.__doc__ = text
    called.__signature__ = Signature(  # type: ignore[attr-defined]
        [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
    )
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _is_argument(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.POSITIONAL_OR_KEYWORD


def _parameter(each: Parameter, help_: Help) -> Parameter:
    """Return a parameter of a function with its description for typer."""
    about: dict[str, Any] = {
        "help": help_.text,
        "metavar": help_.metavar or None,
        "show_default": _is_shown(each.default),
    }
    if _is_argument(each):
        about["metavar"] = each.name.upper()
        return each.replace(annotation=Annotated[each.annotation, typer.Argument(**about)])
    name = f"--{each.name.strip('_').replace('_', '-')}"
    names = f"{name}/--no-{name[2:]}" if each.default is True else name
    return each.replace(annotation=Annotated[each.annotation, typer.Option(names, **about)])


def _parameter_of_field(each: Field[Any], help_: Help, default: object) -> Parameter:
    """Return the option of a field of a specification for typer."""
    kind, name = type_of(each), option_name(each.name)
    if each.metadata["parse"]:
        kind = (list[str] if each.default is MISSING else str) | None
    about = typer.Option(
        f"{name}/--no-{name[2:]}" if kind == bool | None else name,
        help=help_.text,
        metavar=help_.metavar or None,
        rich_help_panel=each.metadata["panel"],
        show_default=_is_shown(default),
    )
    return Parameter(
        each.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, about]
    )


def _is_shown(default: object) -> bool:
    return not isinstance(default, bool) and default not in (None, Parameter.empty, "")


def _default(each: Field[Any]) -> Any:
    """Return the default of an option on the command line, where the help names a parsed one."""
    if each.metadata["parse"]:
        return None
    return Parameter.empty if each.default is MISSING else each.default


def option_values(kind: type[RunSpec], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options of `kind` that differ from their defaults, parsed."""
    return {
        each.name: each.metadata["parse"](value) if each.metadata["parse"] else value
        for each in options_of(kind)
        if (value := values.get(each.name)) not in (None, _default(each), [])
    }


def swept_values(kind: type[RunSpec], values: dict[str, Any]) -> dict[str, list[Any]]:
    """Take from `values` those of options that may be lists, and return their parts.

    Raises BadInput for a list without a value.
    """
    swept = {}
    for each in options_of(kind):
        if each.metadata["is_swept"] and (text := values.pop(each.name, None)) is not None:
            swept[each.name] = list(listed_values(text))
            if not swept[each.name]:
                name = option_name(each.name)
                raise BadInput(f"{name} {text!r}: give a value, or several separated by commas")
    return swept


def print_to_stderr(message: str) -> None:
    """Print a message about a command, with control characters escaped."""
    print("\n".join(map(printable, message.split("\n"))), file=sys.stderr)


def print_lines(*lines: object) -> None:
    """Print lines on stdout, with control characters escaped."""
    for line in lines:
        print("\n".join(map(printable, str(line).split("\n"))))


def console(width: int | None = None) -> Console:
    """Return a rich console for stdout, safe for text of servers. width: if not the terminal's."""
    from numbench.safe_console import SafeConsole

    return SafeConsole(width=width)


def plain_table(alignment: str, *columns: str, **about: Any) -> Table:
    """Return an empty rich table without lines. alignment: `<` or `>` for each column."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for side, name in zip(alignment, columns, strict=True):
        table.add_column(name, justify="right" if side == ">" else "left", **about)
    return table
