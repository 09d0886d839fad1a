"""The command line: parse, call one function of the package, print."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from bench import __version__
from bench.errors import BadInput, NumbenchError

if TYPE_CHECKING:
    from rich.console import Console

    from bench.dataset.generate import Finished
    from bench.report import ReportResult
    from bench.runner import RunReport

# typer does not export the base of its usage errors; it is the parent of one that it does export.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="numbench",
    no_args_is_help=True,
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


class Split(str, Enum):  # noqa: UP042 - typer wants str members
    test = "test"
    val = "val"
    train = "train"


class Format(str, Enum):  # noqa: UP042
    jsonl = "jsonl"
    parquet = "parquet"


class Engine(str, Enum):  # noqa: UP042
    local = "local"
    ray = "ray"


class Protocol(str, Enum):  # noqa: UP042
    exact = "exact"
    paper = "paper"


class Reasoning(str, Enum):  # noqa: UP042
    none = "none"
    minimal = "minimal"
    low = "low"
    medium = "medium"
    high = "high"
    maximal = "maximal"


class Suite(str, Enum):  # noqa: UP042
    paper = "paper"


Tasks = Annotated[str, typer.Option(help="Tasks, separated by commas, or all.", metavar="A,B|all")]


@app.command()
def generate(
    name: Annotated[str, typer.Option(help="Name of the dataset.")] = "v1",
    tasks: Tasks = "all",
    split: Annotated[Split, typer.Option(help="Splits never share an item.")] = Split.test,
    size: Annotated[int, typer.Option(help="Items per task.")] = 500,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 1,
    max_digits: Annotated[int, typer.Option(help="Most significant digits of an operand.")] = 15,
    out: Annotated[Path | None, typer.Option(help="Folder. [default: datasets/NAME]")] = None,
    format_: Annotated[Format, typer.Option("--format", help="File format.")] = Format.jsonl,
    workers: Annotated[int, typer.Option(help="Processes; they do not change a row.")] = 1,
    engine: Annotated[
        Engine, typer.Option(help="Where the processes run: here, or on a Ray cluster.")
    ] = Engine.local,
) -> None:
    """Write a benchmark or a training set with exact answers. Interrupted, it goes on."""
    from bench.dataset import generate as module
    from bench.dataset.settings import Settings, parse_tasks

    settings = Settings(
        name=name,
        tasks=parse_tasks(tasks.split(",")),
        split=split.value,
        size=size,
        seed=seed,
        max_digits=max_digits,
        format=format_.value,
    )
    try:
        done = module.generate(settings, out, workers, engine.value, on_file=_say_finished)
    except KeyboardInterrupt:
        _note("interrupted; the same command goes on with what is missing")
        raise typer.Exit(130) from None
    manifest = done.dataset.manifest
    items = sum(entry.items for entry in manifest.files)
    state = "already there, every file as its manifest says" if done.unchanged else "written"
    print(f"{done.dataset.path}: {items} items, {state} (sha256 {manifest.sha256})")


@app.command()
def run(
    model: Annotated[
        str | None,
        typer.Option(help="A name from `numbench models`, or a route such as openai/NAME."),
    ] = None,
    suite: Annotated[
        Suite | None,
        typer.Option(help="Instead of --model: all configurations of the paper, in turn."),
    ] = None,
    reasoning: Annotated[Reasoning | None, typer.Option(help="Reasoning level.")] = None,
    dataset: Annotated[str, typer.Option(help="Name or folder of a dataset.")] = "v1",
    tasks: Tasks = "all",
    limit: Annotated[int | None, typer.Option(help="Only the first N items per task.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder (of a suite: where its run folders go). "
            "[default: results/MODEL_LEVEL_DATASET]"
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Requests in flight.")] = 16,
    base_url: Annotated[
        str | None, typer.Option(help="Any server that speaks the model's protocol.")
    ] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask again where a request failed for good.")
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="Stop before the run folder has cost more US dollars than this.", metavar="USD"
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show requests, tokens and cost. Needs no key."),
    ] = False,
) -> None:
    """Ask a model and keep every answer. The same command again goes on where it stopped."""
    from bench.dataset.settings import parse_tasks
    from bench.runner import Interrupted

    chosen = None if tasks == "all" else parse_tasks(tasks.split(","))
    level = reasoning and reasoning.value
    where = (dataset, chosen, limit)
    try:
        if suite is not None:
            if model is not None or level is not None:
                raise BadInput("--suite names models and levels: leave out --model and --reasoning")
            _run_suite(where, out, base_url, retry_errors, concurrency, max_cost, dry_run)
        elif model is None:
            raise BadInput("give --model, or --suite paper (see numbench run --help)")
        elif dry_run:
            from bench.plan import plan
            from bench.plan_table import plan_table

            _console().print(plan_table(plan(model, level, *where, out, base_url, retry_errors)))
        else:
            from bench.runner import run as ask
            from bench.scoring import judge

            of_run = (*where, out, concurrency, base_url, retry_errors)
            _print_asked(ask(model, level, *of_run, max_cost=max_cost, judge=judge))
    except Interrupted as interruption:
        print(f"{_asked(interruption.report)}; the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def report(
    runs: Annotated[list[Path] | None, typer.Argument(help="[default: all under results/]")] = None,
    protocol: Annotated[
        Protocol, typer.Option(help="Exact truth, or the study's own scoring.")
    ] = Protocol.exact,
    published: Annotated[
        bool, typer.Option("--published/--no-published", help="Show the paper's figures beside.")
    ] = True,
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("results/report"),
) -> None:
    """Score runs and write tables and figures."""
    from bench.report import report as write_report

    done = write_report(runs or None, protocol=protocol.value, published=published, out=out)
    _print_report(done)


@app.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(help="Folder with the study's CSV files.")],
    out: Annotated[Path, typer.Option(help="Where the runs go.")] = Path("results/study"),
) -> None:
    """Turn the study's raw files into a dataset and one run per model and level."""
    from bench.study import import_study

    runs = import_study(folder, out, say=_note)
    for path in runs:
        print(path)
    print(f"{out}: {len(runs)} runs; next: numbench report {out} --protocol paper")


@app.command()
def audit(
    source: Annotated[str, typer.Argument(help="Dataset, CSV file, or folder of CSV files.")],
    out: Annotated[Path | None, typer.Option(help="Also write the wrong labels as CSV.")] = None,
) -> None:
    """Hold labels against exact truth and list those that are wrong."""
    from bench.dataset.audit import audit as audit_labels
    from bench.dataset.store import open_dataset
    from bench.terminal import audit_report, write_audit

    path = Path(source)
    found = audit_labels(path if path.exists() else open_dataset(source).path)
    _console().print(audit_report(found), soft_wrap=True)
    if out is not None:
        write_audit(found, out)


@app.command()
def describe(
    dataset: Annotated[str, typer.Argument(help="Name or folder of a dataset.")] = "v1",
    runs: Annotated[
        list[Path] | None, typer.Option(help="Also hold difficulty against these runs' scores.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder. [default: DATASET/figures]")] = None,
) -> None:
    """Draw what a dataset asks: magnitudes, digits, difficulty."""
    from bench.dataset.store import open_dataset
    from bench.describe import describe as draw
    from bench.describe import difficulty_check

    folder = out or open_dataset(dataset).path / "figures"
    for path in draw(dataset, folder):
        print(path)
    if runs:
        print(difficulty_check(runs, folder))


@app.command()
def show(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    wrong: Annotated[bool, typer.Option("--wrong", help="Only wrong answers.")] = False,
    tasks: Tasks = "all",
    limit: Annotated[int | None, typer.Option(help="At most N items per task.")] = None,
    protocol: Annotated[Protocol, typer.Option()] = Protocol.exact,
) -> None:
    """Show items, answers, and where the digits part."""
    from bench.dataset.settings import parse_tasks
    from bench.show import show as show_items

    chosen = None if tasks == "all" else parse_tasks(tasks.split(","))
    console = _console()
    for text in show_items(run, protocol.value, chosen, wrong, limit):
        console.print(text, soft_wrap=True)


@app.command()
def models() -> None:
    """List the catalogue: levels, and which keys are set."""
    from bench.terminal import catalogue_table

    _console().print(catalogue_table())


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("results/demo"),
) -> None:
    """Run the arithmetic baselines on v1 and report them beside the published models."""
    from bench.demo import demo as run_demo

    _print_report(run_demo(out, say=_note))


def main() -> NoReturn:
    """The `numbench` command: errors speak to people, tracebacks only with --debug.

    Exit codes: 0 success, 1 failure, 2 wrong use, 130 interrupted.
    """
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        code = app(arguments, standalone_mode=False)
    except _UsageError as error:
        _complain(_usage(error), 2)
    except typer.Abort:
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
    return f"{message.rstrip('.')} (see {command} --help)"


def _complain(message: str, code: int) -> NoReturn:
    print(f"numbench: {message}", file=sys.stderr)
    sys.exit(code)


def _asked(done: RunReport) -> str:
    counts = f"{done.answered} answered now, {done.skipped} before, {done.errors} failed"
    return f"{done.path}: {counts}"


def _print_asked(done: RunReport) -> None:
    print(_asked(done))
    if done.errors:
        _note("some requests failed for good; --retry-errors asks those again")


def _run_suite(
    where: tuple[str, tuple[str, ...] | None, int | None],
    out: Path | None,
    base_url: str | None,
    retry_errors: bool,
    concurrency: int,
    max_cost: float | None,
    dry_run: bool,
) -> None:
    from bench.plan_table import suite_table
    from bench.suite import plan_suite, run_suite

    members = plan_suite(*where, out, base_url, retry_errors)
    _console().print(suite_table(members))
    if not dry_run:
        run_suite(
            members, *where, base_url, retry_errors, concurrency, max_cost, on_done=_print_asked
        )


def _print_report(done: ReportResult) -> None:
    from bench.report.terminal import terminal_table

    _console().print(terminal_table(done))
    print(f"{done.out}: tables/, figures/, scores.parquet, report.json, report.html")


def _say_finished(finished: Finished) -> None:
    entry, done, of, rate, left = finished
    rest = f", {left:.0f} s left" if done < of else ""
    _note(f"{entry.file}: {entry.items:,} items ({done}/{of} files, {rate:,.0f} rows/s{rest})")


def _note(message: str) -> None:
    print(message, file=sys.stderr)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)
