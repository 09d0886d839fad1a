"""The commands that ask models: run, models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.options import Reasoning, Suite, Tasks, console, note
from bench.errors import BadInput

if TYPE_CHECKING:
    from bench.runner import RunReport


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

            console().print(plan_table(plan(model, level, *where, out, base_url, retry_errors)))
        else:
            from bench.runner import run as ask

            of_run = (*where, out, concurrency, base_url, retry_errors)
            _print_asked(ask(model, level, *of_run, max_cost=max_cost))
    except Interrupted as interruption:
        print(f"{_asked(interruption.report)}; the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None


def models() -> None:
    """List the catalogue: levels, and which keys are set."""
    from bench.terminal import catalogue_table

    console().print(catalogue_table())


def _asked(done: RunReport) -> str:
    counts = f"{done.answered} answered now, {done.skipped} before, {done.errors} failed"
    return f"{done.path}: {counts}"


def _print_asked(done: RunReport) -> None:
    print(_asked(done))
    if done.errors:
        note("some requests failed for good; --retry-errors asks those again")


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
    console().print(suite_table(members))
    if not dry_run:
        run_suite(
            members, *where, base_url, retry_errors, concurrency, max_cost, on_done=_print_asked
        )
