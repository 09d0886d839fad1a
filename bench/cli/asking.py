"""The commands that ask models: run, models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from bench.cli.options import DURATION, ApiName, Reasoning, Suite, Tasks, console, duration, note
from bench.errors import BadInput, NumbenchError, printable

if TYPE_CHECKING:
    from bench.runner import RunReport
    from bench.runner.spec import RunSpec


class Terms(NamedTuple):
    """How a run asks, beside what: the arguments of `run` and `run_suite`."""

    concurrency: int | None
    retry_errors: bool
    timeout: float
    time_limit: float | None
    max_cost: float | None


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
    few_shot: Annotated[
        int,
        typer.Option(help="Worked examples before each question, from the validation split."),
    ] = 0,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Most tokens of an answer. [default: the model's own limit]"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Sampling seed, where offered. [default: the catalogue's]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder (of a suite: where its run folders go). "
            "[default: results/MODEL_LEVEL_DATASET]"
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(help="Requests in flight at the most. [default: 16; checkpoints 256]"),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Any server that speaks the model's protocol.")
    ] = None,
    api: Annotated[
        ApiName, typer.Option(help="OpenAI's format: Chat Completions or Responses.")
    ] = ApiName.chat,
    batch: Annotated[
        bool,
        typer.Option("--batch", help="By the provider's batch jobs: within a day, at half price."),
    ] = False,
    timeout: Annotated[
        float, typer.Option(help="Most time of one request.", parser=duration, metavar=DURATION)
    ] = "30m",  # type: ignore[assignment]
    time_limit: Annotated[
        float | None,
        typer.Option(help="Ask nothing new after this time.", parser=duration, metavar=DURATION),
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
    """Ask a model and keep every answer. The same command again goes on where it stopped.

    \b
    numbench run --model gpt-5 --reasoning minimal --limit 5    a first look
    numbench run --model gpt-5 --reasoning high --dry-run       what it would take
    numbench run --model gpt-5 --reasoning high --batch         at half the price
    numbench run --model openai/NAME --base-url http://127.0.0.1:8000/v1
    numbench run --suite paper --max-cost 500 --time-limit 8h

    Everything lies in one folder (--out): run.json says what was asked, responses.jsonl
    holds every answer. Ctrl-C asks nothing more and waits 20 seconds for answers under
    way; a second one ends at once.
    """
    from bench.dataset.settings import parse_tasks
    from bench.runner import Interrupted
    from bench.runner.spec import RunSpec

    spec = RunSpec(
        model=model or "",
        reasoning=reasoning and reasoning.value,
        dataset=dataset,
        tasks=None if tasks == "all" else parse_tasks(tasks.split(",")),
        limit=limit,
        few_shot=few_shot,
        max_tokens=max_tokens,
        seed=seed,
        base_url=base_url,
        api=api.value,
        out=out,
    )
    terms = Terms(concurrency, retry_errors, timeout, time_limit, max_cost)
    try:
        if suite is not None:
            if model is not None or reasoning is not None:
                raise BadInput("--suite names models and levels: leave out --model and --reasoning")
            if batch or api is not ApiName.chat:
                raise BadInput("--batch and --api are for one --model: leave them out with --suite")
            _run_suite(spec, terms, dry_run)
        elif model is None:
            raise BadInput("give --model, or --suite paper (see numbench run --help)")
        elif dry_run:
            _show_plan(spec, terms, batch)
        else:
            from bench.runner import run as ask
            from bench.scoring import judge

            _print_asked(ask(spec, **terms._asdict(), batch=batch, judge=judge))
    except Interrupted as interruption:
        print(f"{_asked(interruption.report)}; the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None


def models() -> None:
    """List the catalogue: levels, prices, and which keys are set."""
    from bench.terminal import catalogue_table

    console().print(catalogue_table())


def _asked(done: RunReport) -> str:
    counts = f"{done.answered} answered now, {done.skipped} before, {done.errors} failed"
    return f"{done.path}: {counts}"


def _print_asked(done: RunReport) -> None:
    """Say what came of a run. NumbenchError where nothing did."""
    print(_asked(done))
    if not done.errors:
        return
    again = []
    if done.errors > done.final:
        again.append("the same command asks again what may have passed")
    if done.final:
        again.append("--retry-errors what failed for good")
    said = f"the last failure: {done.last_error}; {', '.join(again)}"
    if not done.answered and not done.skipped:
        raise NumbenchError(f"{done.path}: nothing was answered; {said}")
    note(printable(said))


def _show_plan(spec: RunSpec, terms: Terms, batch: bool) -> None:
    from bench.runner.plan_table import plan_table
    from bench.runner.planning import plan

    console().print(plan_table(plan(spec, terms.retry_errors, batch), terms.max_cost))


def _run_suite(spec: RunSpec, terms: Terms, dry_run: bool) -> None:
    from bench.runner.plan_table import suite_table
    from bench.runner.suite import plan_suite, run_suite
    from bench.scoring import judge

    members = plan_suite(spec, terms.retry_errors)
    console().print(suite_table(members, terms.max_cost))
    if not dry_run:
        run_suite(members, **terms._asdict(), judge=judge, on_done=_print_asked)
