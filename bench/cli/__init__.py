"""The command line: parse, call one function of the package, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from bench import __version__
from bench.cli import asking, datasets, exporting, results, small_models
from bench.errors import NumbenchError, printable

# typer does not export the base of its usage errors; it is the parent of one that it does export.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="numbench",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Measure how well a language model computes with numbers, and at what token price.

\b
numbench demo                                      the whole way, no key needed
numbench run --model gpt-5 --reasoning minimal     ask a model (--dry-run: what it may cost)
numbench report                                    tables and figures of all runs

Add --debug to any command for a traceback where it fails.
""",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"numbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


_COMMANDS: dict[str, Callable[..., None]] = {
    "generate": datasets.generate,
    "run": asking.run,
    "report": results.report,
    "import": results.import_,
    "rescore": results.rescore,
    "audit": datasets.audit,
    "describe": datasets.describe,
    "show": results.show,
    "export": exporting.export,
    "models": asking.models,
    "encodings": small_models.encodings,
    "train": small_models.train,
    "perplexity": small_models.perplexity,
    "demo": results.demo,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)


def main() -> NoReturn:
    """The `numbench` command: errors speak to people, tracebacks only with --debug.

    Exit codes: 0 success, 1 failure, 2 wrong use, 130 interrupted.
    """
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        code = app(arguments or ["--help"], standalone_mode=False)
    except _UsageError as error:
        _complain(_usage(error), 2)
    except (typer.Abort, KeyboardInterrupt):
        if debug:
            raise
        _complain("interrupted", 130)
    except NumbenchError as error:
        if debug:
            raise
        _complain(str(error), error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone: nothing is left to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if debug:
            raise
        _complain(f"{error.filename or 'input/output'}: {error.strerror or error}", 1)
    sys.exit(code or 0)


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "numbench"
    message: str = error.format_message()  # type: ignore[attr-defined]
    return f"{' '.join(message.split()).rstrip('.')} (see {command} --help)"


def _complain(message: str, code: int) -> NoReturn:
    print(f"numbench: {printable(message)}", file=sys.stderr)
    sys.exit(code)
