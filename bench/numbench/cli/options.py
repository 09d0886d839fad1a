"""Commands made of functions and run specifications, and the output helpers they share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING
from importlib import import_module
from inspect import Parameter, Signature, signature
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from numbench.core.arguments import explained_arguments
from numbench.errors import BadInput, printable
from numbench.runner.options import OptionField, Panel, field_docs, options_of
from numbench.runner.spec import RunSpec, listed_values

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)
"""Whether to show all warnings."""


VALUES_OF = {
    "dataset": ("numbench.dataset.store", "dataset_names"),
    "tasks": ("numbench.tasks", "selectable_names"),
    "on": ("numbench.tasks", "selectable_names"),
    "prompts": ("numbench.tasks.prompts", "bundled_sets"),
    "model": ("numbench.models.catalogue", "named_models"),
}
"""Options → module and name of the function with the values that the shell completes."""


def completion_of(name: str) -> Callable[[str], list[str]] | None:
    """Return the function that completes the values of an option, also after commas."""
    if name not in VALUES_OF:
        return None

    def complete(incomplete: str) -> list[str]:
        module, function = VALUES_OF[name]
        before, comma, last = incomplete.rpartition(",")
        values = getattr(import_module(module), function)()
        return [f"{before}{comma}{each}" for each in values if each.startswith(last)]

    return complete


def option(metavar: str, text: str, values_of: str = "") -> Any:
    """Return an option for typer, with what the help shows for its value.

    values_of: the option whose values the shell completes.
    """
    return typer.Option(metavar=metavar, help=text, autocompletion=completion_of(values_of))


Out = Annotated[Path, option("FOLDER", "Folder to write.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show requests, tokens and cost. Needs no API key.")
]


SWITCHES = {
    "--json": "Print the result as JSON, and everything else on stderr.",
    "--quiet": "Print only the result and errors.",
    "--verbose": "Print all warnings, not only the first.",
    "--debug": "Print the traceback of an error.",
}
"""The options of every command, which `numbench.cli.run_app` implements."""


class CommandWithPanels(TyperCommand):
    """A command whose help shows the options under the headings of their panels."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as `OLD [NEW]`, without typer's braces."""
        return [re.sub("[{}]", "", piece).upper() for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a list of options for each panel."""
        records = []
        for each in self.get_params(ctx):
            name, text = each.get_help_record(ctx) or ("", "")
            name = each.name.upper() if each.param_type_name == "argument" else name
            records.append((getattr(each, "rich_help_panel", None) or "Options", (name, text)))
        records += [("Options", switch) for switch in SWITCHES.items()]
        _write_sections(formatter, get_args(Panel), records)


class CommandGroups(TyperGroup):
    """A program whose help shows the commands under the headings of their groups."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Raises Abort if it is interrupted, for which typer has no message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interruption:
            raise typer.Abort(str(interruption)) from interruption

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list of commands for each group."""
        records = []
        for name in self.list_commands(ctx):
            each: Any = self.get_command(ctx, name)
            panel = getattr(each, "rich_help_panel", None) or "Commands"
            records.append((panel, (name, each.get_short_help_str(80))))
        _write_sections(formatter, dict.fromkeys(panel for panel, _ in records), records)


def _write_sections(formatter: Any, panels: Any, records: Any) -> None:
    for panel in panels:
        if rows := [record for of_panel, record in records if of_panel == panel and record[0]]:
            with formatter.section(panel):
                formatter.write_dl(rows)


def takes_options_of(
    kind: type[RunSpec], has_several_runs: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in place of its `**options`, an option for each one of a specification.

    has_several_runs: whether swept options take several values, each of which makes a run, and none
    is needed, because a suite may have it.
    """
    docs = field_docs(kind)  # type: ignore[arg-type]  # a class has a hash
    return _takes(
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=None if has_several_runs and each.default is MISSING else _default(each),
            annotation=_about(each, docs.get(each.name, ""), has_several_runs),
        )
        for each in options_of(kind)
    )


def takes_arguments_of(
    function: Callable[..., Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in place of its `**values`, the arguments of a function of the API.

    They are those that the docstring of the function explains, each in a paragraph `NAME: TEXT`.
    Texts in their annotations are what the help shows for the value.
    """
    docs = explained_arguments(function)
    parameters = signature(function).parameters.values()
    return _takes(_argument(each, docs[each.name]) for each in parameters if each.name in docs)


def _argument(each: Parameter, text: str) -> Parameter:
    """Return an argument of the API for typer: text for names, paths and lists of them."""
    kind, metavar = each.annotation, None
    if get_origin(kind) is Annotated:
        kind, metavar = get_args(kind)
    members = (kind, *get_args(kind))
    if str in members:
        kind = str | None
    if each.kind is Parameter.KEYWORD_ONLY or isinstance(each.default, str):
        flag = [f"--{each.name}"] if each.default is False else []
        about = typer.Option(
            *flag, metavar=metavar, help=text, show_default=each.default is not True,
            autocompletion=completion_of(each.name),
        )  # fmt: skip
    else:
        about = typer.Argument(help=text)
        takes_several = any(get_origin(each) is Iterable for each in members)
        kind = list[str] | None if takes_several else kind
    return each.replace(annotation=Annotated[kind, about])


def _takes(
    parameters: Iterable[Parameter],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command parameters in place of its last one."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        *own, _ = signature(function, eval_str=True).parameters.values()
        function.__signature__ = Signature(  # type: ignore[attr-defined]
            sorted((*own, *parameters), key=lambda each: each.kind)
        )
        return function

    return decorate


def _about(each: OptionField, text: str, has_several_runs: bool) -> Any:
    """Return the annotation of an option for typer: text, but for flags and choices."""
    is_flag, kind, metavar = each.kind == bool | None, each.kind, each.option.metavar
    if has_several_runs and each.option.is_swept:
        sentence, default, ending = text.partition(" [default")
        text, metavar = f"{sentence} Several: one run each.{default}{ending}", f"{metavar},…"
    if not is_flag and kind is not bool and get_origin(kind) is not Literal:
        kind = (list[str] if each.is_mapping else str) | None
    about = typer.Option(
        f"{each.flag}/--no-{each.flag[2:]}" if is_flag else each.flag,
        help=text,
        metavar=metavar,
        rich_help_panel=each.option.panel,
        autocompletion=completion_of(each.name),
        show_default=kind is not bool and _default(each) is not None,
    )
    return Annotated[kind, about]


def _default(each: OptionField) -> Any:
    """Return the default of an option on the command line; None where its help names it."""
    if each.default is MISSING:
        return Parameter.empty
    if each.kind is bool:
        return False
    return None if each.option.parse or each.default is None else str(each.default)


def given_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value."""
    return {name: value for name, value in values.items() if value not in (None, [])}


def swept_values(values: dict[str, Any]) -> dict[str, list[Any]]:
    """Take from `values` those of options that may be lists, and return their parts.

    Raises BadInput for a list without a value.
    """
    swept = {}
    for each in options_of(RunSpec):
        if each.option.is_swept and (text := values.pop(each.name, None)) is not None:
            swept[each.name] = list(listed_values(text))
            if not swept[each.name]:
                raise BadInput(f"{each.flag} {text!r}: give a value, or several, with commas")
    return swept


def print_to_stderr(message: str) -> None:
    """Print a message about a command, with control characters escaped."""
    print(printable(message, "\n"), file=sys.stderr)


def print_lines(*lines: object) -> None:
    """Print lines on stdout, with control characters escaped."""
    for line in lines:
        print(printable(str(line), "\n"))


def console(width: int | None = None) -> Console:
    """Return a rich console for stdout, safe for text of servers. width: if not the terminal's."""
    from numbench.core.safe_console import SafeConsole

    return SafeConsole(width=width)


def record_table(
    records: Sequence[Any], columns: Mapping[str, Callable[[Any], object]] | None = None
) -> Table:
    """Return a table with a row per record. columns: heading → value. [default: all fields]"""
    names = records[0]._fields
    columns = columns or {name.capitalize(): attrgetter(name) for name in names}
    rows = [[value(record) for value in columns.values()] for record in records]
    sides = ("<" if isinstance(each, str) else ">" for each in rows[0])
    table = plain_table("".join(sides), *columns)
    for row in rows:
        shown = (f"{each:,}" if isinstance(each, int) else str(each) for each in row)
        table.add_row(*map(printable, shown))
    return table


def plain_table(alignment: str, *columns: str, **about: Any) -> Table:
    """Return an empty rich table without lines. alignment: `<` or `>` for each column."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for side, name in zip(alignment, columns, strict=True):
        table.add_column(name, justify="right" if side == ">" else "left", **about)
    return table
