"""The commands that run models: run and memory-test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from numbench.cli.options import (
    DryRun,
    console,
    option_values,
    print_to_stderr,
    swept_values,
    with_options,
)
from numbench.cli.run_reports import finish, print_run_report
from numbench.errors import BadInput
from numbench.runner.spec import RunSpec

if TYPE_CHECKING:
    from numbench.memory_test.registration import Registration

PAPER_SUITE = "paper"
"""The suite that is no file."""


def _run(
    *,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="paper|FILE",
            rich_help_panel="Model",
            help="Run the paper's 13 configurations, or those of a TOML file; one per provider at "
            "a time.",
        ),
    ] = None,
    dry_run: DryRun = False,
    **values: Any,
) -> None:
    """Run a model on a dataset and store every response. Resumes an interrupted run.

    \b
    Examples:
      numbench run --model gpt-5 --reasoning minimal --limit 5   a first test
      numbench run --model gpt-5 --reasoning high --dry-run      cost estimate
      numbench run --model gpt-5 --reasoning high --batch        half the price
      numbench run --model openai/NAME --samples 5 --temperature 0.7
      numbench run --model openai/NAME --base-url http://127.0.0.1:8000/v1
      numbench run --model gpt-5 --reasoning high --shard 2/8   machine 2 of 8
      numbench run --model gemini-2.5-pro --reasoning 4096
      numbench run --model gpt-5 --reasoning minimal,low,medium
      numbench run --model gpt-5 --reasoning low --prompts paper,steps,paraphrases
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
    given = option_values(RunSpec, values)
    if suite is not None:
        if "model" in given or "reasoning" in given:
            raise BadInput("--suite sets models and levels: omit --model and --reasoning")
    elif "model" not in given:
        raise BadInput("give --model NAME or --suite paper (see numbench run --help)")
    swept = swept_values(RunSpec, given)
    if suite is not None or any(len(several) > 1 for several in swept.values()) or _is_sweep(swept):
        _run_several(suite, swept, given, dry_run)
        return
    single = {name: value for name, (value,) in swept.items()}
    spec = RunSpec(**given, **single)
    if dry_run:
        from numbench.runner import plan
        from numbench.runner.plan_table import plan_table

        console().print(plan_table(plan(spec), spec.max_cost))
        return
    from numbench.runner import run as run_model
    from numbench.scoring import is_correct

    with exit_on_interrupt():
        report = run_model(spec, is_correct)
    print_run_report(report)
    print(f"next: numbench report {report.path}")
    finish([report])


def _is_sweep(swept: dict[str, list[Any]]) -> bool:
    """Return whether a single value stands for several: paraphrases, or all levels."""
    from numbench.tasks.prompts import expand_prompt_names

    names = [str(name) for name in swept.get("prompts", [])]
    return len(expand_prompt_names(names)) > len(names) or swept.get("reasoning") == ["all"]


def _run_several(
    suite: str | None, swept: dict[str, list[Any]], given: dict[str, Any], dry_run: bool
) -> None:
    """Run a suite, or without one a run for each combination of the values in `swept`."""
    from numbench.runner.plan_table import suite_table
    from numbench.runner.suite import expand, paper_suite, plan_suite, run_suite, suite_file
    from numbench.scoring import is_correct

    if suite is None:
        specs = list(expand(swept, given))
    elif suite == PAPER_SUITE:
        specs = list(paper_suite(swept, given))
    else:
        specs = suite_file(Path(suite), swept, given)
    members = plan_suite(specs, "" if suite in (None, PAPER_SUITE) else str(suite))
    console().print(suite_table(members, given.get("max_cost")))
    if not dry_run:
        with exit_on_interrupt():
            reports = run_suite(members, is_correct, print_run_report, print_to_stderr)
        print(f"next: numbench report {given.get('out') or 'results'}")
        finish(reports)


def _memory_test(
    *,
    margin: Annotated[
        float,
        typer.Option(
            metavar="POINTS",
            rich_help_panel="Questions",
            help="Difference that the verdict `equivalent` excludes.",
        ),
    ] = 3.0,
    dry_run: DryRun = False,
    **values: Any,
) -> None:
    """Test with fresh questions whether a model knows a dataset.

    \b
    Examples:
      numbench memory-test --model gpt-5 --reasoning low --dry-run
      numbench memory-test --model gpt-5 --reasoning low --max-cost 20
      numbench memory-test --model openai/NAME --margin 2

    The fresh questions are as difficult as those of the dataset. The rule and the hash of their
    seed are registered before the first question. They need a dataset of numbench generate.
    Writes one run folder for both sets of questions (--out). The same command again resumes the
    test. Exit code 3: questions are left without an answer.
    """
    from numbench.memory_test.registration import CERTIFICATE
    from numbench.memory_test.runs import plan_memory_test, run_memory_test
    from numbench.runner.plan_table import suite_table
    from numbench.runner.run_report import RunReport
    from numbench.scoring import is_correct

    dataset = values.pop("dataset")
    spec = RunSpec(**option_values(RunSpec, values), dataset=dataset)
    planned = plan_memory_test(spec, margin)
    console().print(suite_table(planned.members, spec.max_cost))
    print(planned.rule.summary)
    if dry_run:
        return

    def show(folder: Path, registration: Registration) -> None:
        print(f"registered: {folder / CERTIFICATE}, seed hash {registration.seed_sha256}")

    reports: list[RunReport] = []

    def collect(report: RunReport) -> None:
        reports.append(report)
        print_run_report(report)

    with exit_on_interrupt():
        registration = run_memory_test(
            spec, margin, is_correct, on_registered=show, on_done=collect, on_failed=print_to_stderr
        )
    if registration.seed is None:
        print(f"{planned.folder}: not all answers are here, so the seed is not revealed yet")
    else:
        print(f"{planned.folder}: seed revealed in {CERTIFICATE}")
    print(f"next: numbench report {planned.folder}")
    finish(reports)


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Print what an interrupted run has done, and exit with code 130."""
    from numbench.runner import RunInterrupted

    try:
        yield
    except RunInterrupted as interruption:
        print_to_stderr(str(interruption))
        raise typer.Exit(130) from None


run = with_options(RunSpec, _run, is_model_optional=True)
memory_test = with_options(
    RunSpec, _memory_test, omit=("shard", "batch"), defaults={"dataset": "v1"}
)
