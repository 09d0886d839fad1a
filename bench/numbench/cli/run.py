"""The commands that ask models: run, horizon and memory-test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from numbench.cli.json_output import set_result
from numbench.cli.options import (
    DryRun,
    console,
    given_values,
    option,
    print_lines,
    print_to_stderr,
    swept_values,
    takes_options_of,
)
from numbench.errors import BadInput, NumbenchError
from numbench.runner.spec import HorizonSpec, MemoryTestSpec, RunSpec

if TYPE_CHECKING:
    from numbench.memory_test.registration import Registration
    from numbench.runner.estimates import TaskPlan
    from numbench.runner.planning import Plan
    from numbench.runner.progress import RunReport


class PlannedRun(NamedTuple):
    """What a dry run says of a run: its folder, and what is to be sent and paid.

    highest_cost: US dollars if every answer is as long as --max-tokens, without repeated requests.
    """

    path: Path
    title: str
    tasks: tuple[TaskPlan, ...]
    total: TaskPlan
    notes: tuple[str, ...]
    highest_cost: float | None


INCOMPLETE = 3
"""The exit code of a run that leaves questions without an answer."""


@takes_options_of(RunSpec, has_several_runs=True)
def run(
    *,
    suite: Annotated[
        str | None,
        option(
            "paper|FILE",
            "Run the paper's 13 configurations, or those of a TOML file; one per provider at "
            "a time.",
        ),
    ] = None,
    dry_run: DryRun = False,
    **values: Any,
) -> None:
    """Run a model on a dataset and store every response. Resumes an interrupted run.

    \b
    Examples:
      numbench run --model gpt-6.2-sol --reasoning low --limit 5   a first test
      numbench run --model gpt-6.2-sol --reasoning high --dry-run  cost estimate
      numbench run --model gpt-6.2-sol --reasoning high --batch    half the price
      numbench run --model openai/NAME --samples 5 --temperature 0.7
      numbench run --model openai/NAME --base-url http://127.0.0.1:8000/v1
      numbench run --model gpt-6.2-sol --reasoning high --shard 2/8
      numbench run --model gemini/gemini-2.5-flash-lite --reasoning 4096
      numbench run --model gpt-6.2-sol --reasoning low,medium,high
      numbench run --model gpt-6.2-sol --reasoning low --prompts paper,steps
      numbench run --suite paper --max-cost 500 --time-limit 8h
      numbench run --suite my-suite.toml --dry-run

    Lists of levels, prompt sets and transformations give one run per combination, in a folder of
    its own, with shared limits.
    Writes one run folder (--out): run.json (settings), requests.jsonl (one request per task),
    responses.jsonl (every response) and, with --batch, jobs.jsonl. The same command again resumes
    the run and never repeats an answered question; with a larger --limit or --samples it adds the
    missing ones. Exit code 3: questions are left without an answer.
    Ctrl-C stops sending requests and waits up to 20 seconds for those in flight; a second Ctrl-C
    exits at once. API keys are read from the environment or from ./.env.
    """
    from numbench.runner.suite import PAPER_SUITE, expand, is_sweep, paper_suite, suite_file

    given = given_values(values)
    if suite is not None:
        if "model" in given or "reasoning" in given:
            raise BadInput("--suite sets models and levels: omit --model and --reasoning")
    elif "model" not in given:
        raise BadInput("give --model NAME or --suite paper (see numbench run --help)")
    swept = swept_values(given)
    if suite is None and not is_sweep(swept):
        spec = RunSpec(**given, **{name: value for name, (value,) in swept.items()})
        _run_one(spec, dry_run)
        return
    from numbench.runner.suite import plan_suite, run_suite
    from numbench.scoring import is_correct

    if suite is None:
        specs = list(expand(swept, given))
    elif suite == PAPER_SUITE:
        specs = list(paper_suite(swept, given))
    else:
        specs = suite_file(Path(suite), swept, given)
    plans = plan_suite(specs, dry_run)
    _print_plans(plans)
    if not dry_run:
        reports = set_result(run_suite(plans, is_correct, print_run_report, print_to_stderr))
        _finish(given.get("out") or "results", reports)


@takes_options_of(HorizonSpec)
def horizon(*, dry_run: DryRun = False, **values: Any) -> None:
    """Measure the problem size up to which a model is correct.

    \b
    Examples:
      numbench horizon --model gpt-6.2-sol --reasoning low --dry-run
      numbench horizon --model gpt-6.2-sol --reasoning low --max-cost 5
      numbench horizon --model openai/NAME --tasks long_multiplication,copy
      numbench horizon --model openai/NAME --tasks forms
      numbench horizon --model gpt-6.2-sol --reasoning high --precision 0.3
      numbench horizon --model baseline/float64              no API key needed
      numbench report results/*_horizon                    compare levels

    A scaled task has questions of any size: of 1 to 4,096 digits, elements, operations or rows. An
    answer is correct if every digit is. The horizon h50 is the size at which 50% of the answers
    are correct, h90 at which 90% are; where guesses can be correct, halfway and nine tenths of the
    way from chance to 100%: 75% and 95% for long_comparison, where chance is 50%. `copy` only
    repeats a number: a horizon near that of `copy` is one of reading and writing digits, not of
    arithmetic.

    Sizes count digits (long_addition, long_subtraction, long_multiplication, long_division,
    long_comparison, copy), elements of six digits (long_sorting, long_max, long_sum, long_mean)
    or operations (chain, nested). In the group forms they count digits; in the group
    context, table rows or sentences.

    Each task runs in rounds. The sizes of a round are those that tell the most about h50 per
    token, given the answers before. A task is complete when its h50 is precise enough
    (--precision), after --max-items, or when the model passes the largest size or fails the
    smallest. Sizes whose answers cannot fit the token limit are skipped.

    Writes one run folder (--out), with rounds.jsonl (the questions of each round) beside the files
    of numbench run. The same command again resumes the measurement and never repeats an answered
    question. A smaller --precision, a larger --max-items or more --tasks continue it.
    """
    _run_one(HorizonSpec(**given_values(values)), dry_run)


@takes_options_of(MemoryTestSpec)
def memory_test(*, dry_run: DryRun = False, **values: Any) -> None:
    """Test with fresh questions whether a model has memorized a dataset.

    \b
    Examples:
      numbench memory-test --model gpt-6.2-sol --reasoning low --dry-run
      numbench memory-test --model gpt-6.2-sol --reasoning low --max-cost 20
      numbench memory-test --model openai/NAME --margin 2

    The fresh questions are as difficult as those of the dataset. The decision rule and the hash of
    the fresh questions' seed are registered before the first question. Requires a dataset made by
    numbench generate. Writes one run folder for both sets of questions (--out). The same command
    again resumes the test. Exit code 3: questions are left without an answer.
    """
    from numbench.memory_test.outcome import read_outcome
    from numbench.memory_test.registration import CERTIFICATE
    from numbench.memory_test.runs import plan_memory_test, run_both
    from numbench.scoring import is_correct

    planned = plan_memory_test(MemoryTestSpec(**given_values(values)))
    _print_plans(planned.plans)
    print(planned.registration.rule.summary)
    if dry_run:
        return

    def show(folder: Path, registration: Registration) -> None:
        print(f"registered: {folder / CERTIFICATE}, seed hash {registration.seed_sha256}")

    reports = run_both(planned, is_correct, show, print_run_report, print_to_stderr)
    if not any(each.failure for each in reports):
        tested = set_result(read_outcome(planned.folder))
        if tested.registration.seed is not None:
            print(f"{planned.folder}: seed revealed in {CERTIFICATE}")
        print(f"verdict: {tested.verdict or f'none; {tested.reason}'}")
    _finish(planned.folder, reports)


def _run_one(spec: RunSpec, dry_run: bool) -> None:
    """Plan or execute a run or a measurement, and print the result."""
    from numbench.runner.execution import run as run_model
    from numbench.runner.planning import plan
    from numbench.scoring import is_correct

    if dry_run:
        _print_plans([plan(spec, is_dry=True)])
        return
    report = run_model(spec, is_correct)
    set_result([report])
    is_horizon = isinstance(spec, HorizonSpec)
    print_run_report(report, can_retry_errors=not is_horizon)
    if is_horizon:
        _print_horizons(report.path)
    _finish(report.path, [report])


def _print_plans(plans: Sequence[Plan]) -> None:
    """Print what runs would send and cost, which is the result of a dry run."""
    from numbench.runner.plan_table import plan_table

    shown = [PlannedRun(p.path, p.title, p.tasks, p.total, p.notes, p.highest_cost) for p in plans]
    set_result(shown)
    console().print(plan_table(plans))


def _print_horizons(folder: Path) -> None:
    """Print the horizons of a measurement, and which sizes could not be asked."""
    from numbench.journal.run_folder import read_info
    from numbench.reporting.horizon_runs import read_horizon_run
    from numbench.reporting.terminal import horizon_table
    from numbench.runner.planning import size_notes

    measured = read_horizon_run(folder)
    set_result(measured)
    console().print(horizon_table(measured))
    if info := read_info(folder).horizon:
        print_lines(*size_notes(info.largest))


def print_run_report(report: RunReport, can_retry_errors: bool = True) -> None:
    """Print the result of a run.

    can_retry_errors: whether the command has an option for that.
    """
    counts = f"{report.answered:,} answered now, {report.skipped:,} done earlier"
    if lost := report.possibly_billed_attempts:
        attempts = "attempt" if lost == 1 else "attempts"
        billed = f", {lost:,} {attempts} without an answer may have been billed"
    print(f"{report.path}: {counts}, {report.errors:,} failed{billed if lost else ''}")
    for warning in report.warnings:
        print_lines(f"warning: {report.path}: {warning}")
    if report.failure or not (report.errors or report.unanswered):
        return
    if not report.errors:
        print_to_stderr(
            f"{report.unanswered:,} questions have no answer, because of permanent failures; add "
            "--retry error to ask them again"
        )
        return
    hints = []
    if report.errors > report.permanent_errors:
        hints.append("run the same command again to retry temporary failures")
    if report.permanent_errors and can_retry_errors:
        hints.append("add --retry error to retry permanent failures")
    message = "; ".join(filter(None, [f"last failure: {report.last_error}", ", ".join(hints)]))
    print_to_stderr(message)


def _finish(folder: object, reports: Sequence[RunReport]) -> None:
    """End a command; with exit code 3 if a question of its runs has no answer.

    Raises NumbenchError if a run failed.
    """
    if failures := [report.failure for report in reports if report.failure]:
        raise NumbenchError("; ".join(failures))
    print(f"next: numbench report {folder}")
    if any(report.unanswered for report in reports):
        raise typer.Exit(INCOMPLETE)
