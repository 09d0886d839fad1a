"""The command line: parse arguments, call one function of the package, print the result."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence, Set
from contextlib import nullcontext, redirect_stderr
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import pairwise
from typing import Annotated, NoReturn

import typer

from numbench._version import __version__
from numbench.cli import datasets, listings, results, run
from numbench.cli.json_output import json_on_stdout
from numbench.cli.options import SWITCHES, VERBOSE, CommandGroups, CommandWithPanels
from numbench.errors import NumbenchError, printable

# typer does not export the base class of its usage errors, but a subclass of it.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

PROGRAM = "numbench"

app = typer.Typer(
    name=PROGRAM,
    cls=CommandGroups,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Measure how well a language model computes with numbers, and at what cost.

    \b
    Examples:
      numbench demo                                     no API key needed
      numbench run --model gpt-6.2-sol --reasoning low  add --dry-run for the cost
      numbench report                                   tables, figures, HTML page
      numbench show results/RUN --wrong                 wrong answers, one by one
      numbench COMMAND --help                           examples and options

    Results are written below results/ unless a command has --out. Exit codes: 0 success, 1 failure,
    2 usage error, 3 run incomplete, 130 interrupted.
    """


_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Measure": {
        "demo": results.demo,
        "models": listings.models,
        "run": run.run,
        "report": results.report,
        "compare": results.compare,
        "show": results.show,
    },
    "Data": {
        "datasets": listings.datasets,
        "tasks": listings.tasks,
        "prompts": listings.prompts,
        "generate": datasets.generate,
        "audit": datasets.audit,
    },
    "Share": {
        "export": results.export,
        "import": results.import_,
        "verify": results.verify,
        "leaderboard": results.leaderboard,
    },
    "Advanced": {"horizon": run.horizon, "memory-test": run.memory_test, "merge": results.merge},
}

for _group, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, cls=CommandWithPanels, rich_help_panel=_group)(_command)


def main() -> NoReturn:
    """Run the `numbench` command."""
    run_app(app, PROGRAM)


def run_app(app: typer.Typer, program: str) -> NoReturn:
    """Run a command-line program: errors are one line; tracebacks only with --debug.

    Exit codes: 0 success, 1 failure, 2 usage error, 3 run incomplete, 130 interrupted.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # The next file that is opened would have the number of the closed one.
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        # A pipe may have an encoding that lacks symbols of the tables, as on Windows.
        sys.stdout.reconfigure(errors="replace")
    switches = SWITCHES.keys() & sys.argv[1:]
    given = [each for each in sys.argv[1:] if each not in switches]
    arguments = _dated(given) or ["--help"]
    VERBOSE.set("--verbose" in switches)
    try:
        sys.exit(_run(app, program, arguments, switches))
    except BrokenPipeError:
        # The reader of stdout is gone; the flush at exit would fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _dated(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the day in UTC for `{date}`, except in what requests contain.

    Schedulers such as cron have no shell that could put the date into the name of a folder.
    """
    day = datetime.now(UTC).date().isoformat()
    return [
        each
        if {"--param", "--header"} & {before, each.partition("=")[0]}
        else each.replace("{date}", day)
        for before, each in pairwise(["", *arguments])
    ]


def _run(app: typer.Typer, program: str, arguments: Sequence[str], switches: Set[str]) -> int:
    """Run a program and return its exit code; with --json, stdout has the result alone."""
    code, message, stderr = 0, None, sys.stderr
    with (
        open(os.devnull, "w") if "--quiet" in switches else nullcontext(stderr) as progress,
        redirect_stderr(progress),
        json_on_stdout(arguments[0], "--json" in switches) as finish,
    ):
        try:
            code = app(arguments, prog_name=program, standalone_mode=False) or 0
        except _UsageError as error:
            code, message = 2, _usage_message(error, [program, *arguments[:1]])
        except (typer.Abort, KeyboardInterrupt, NumbenchError, OSError) as error:
            if "--debug" in switches:
                raise
            code, message = _failure(error)
        if message is not None:
            print(f"{program}: {printable(message)}", file=stderr)
        try:
            finish(code, message)
        except OSError as error:
            code, message = _failure(error)
            print(f"{program}: {printable(message)}", file=stderr)
    return code


def _failure(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the message of an error. Raises it if nobody reads the output."""
    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, NumbenchError):
        return error.exit_code, str(error)
    if isinstance(error, OSError):
        return 1, f"{error.filename or 'input/output'}: {error.strerror or error}"
    return 130, str(error) or "interrupted"


def _usage_message(error: Exception, called: Sequence[str]) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else " ".join(called)
    message: str = error.format_message()  # type: ignore[attr-defined]
    for expected, advice in (("integer", "a whole number"), ("number|float", "a number")):
        known = rf"(Input should be a|'.*' is not a) valid ({expected}).*"
        message = re.sub(known, f"give {advice}", message)
    message = message.replace("Value error, ", "")
    return f"{' '.join(message.split()).rstrip('.')} (see {command} --help)"
