"""The commands that use responses: report, show, compare, merge, demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from numbench import api
from numbench.cli.json_output import set_result
from numbench.cli.options import (
    VERBOSE,
    Out,
    console,
    given_values,
    option,
    plain_table,
    print_lines,
    print_to_stderr,
    takes_arguments_of,
)
from numbench.errors import NumbenchError
from numbench.records import PAPER

if TYPE_CHECKING:
    from rich.table import Table

    from numbench.reporting.build import ReportResult
    from numbench.reporting.regression import Regression

ALL = "all"

_VERDICTS = {
    "better": ("better", "green"),
    "worse": ("worse", "red"),
    "not significantly different": ("not significant", ""),
}


@takes_arguments_of(api.report)
def report(**values: Any) -> None:
    """Write a report with tables and figures.

    \b
    Examples:
      numbench report                                   all runs under results/
      numbench report results/RUN1 results/RUN2 --out results/comparison
      numbench report --protocol paper                  scored as in the paper
      numbench report --formats svg,pdf                 figures for a paper

    Writes to --out: report.html (one page, open it in a browser), tables/ (CSV, Markdown, LaTeX),
    figures/ (SVG, or as in --formats), scores.parquet (every score) and report.json. Folders of
    numbench horizon may be among the runs. To compare two runs: numbench compare.
    """
    _print_report(api.report(**given_values(values), on_progress=print_to_stderr))


@takes_arguments_of(api.compare)
def compare(
    *,
    output: Annotated[
        Literal["text", "github"],
        typer.Option("--format", help="github: as text, with annotations of GitHub Actions."),
    ] = "text",
    **values: Any,
) -> None:
    """Compare a new run with an old one; fail if it is worse.

    \b
    Examples:
      numbench compare results/OLD results/NEW
      numbench compare baseline.json results/NEW --json
      numbench compare results/OLD results/NEW --on mean,std
      numbench compare results/OLD results/NEW --margin 5

    Runs are compared on the questions that both answered, by the mean over the tasks (All) and task
    by task; horizon runs by the problem size at 50% of each task. The exit code is 1 if the mean,
    or a task of --on, is significantly worse, or if tasks or answers are missing. "Not
    significantly different" does not mean equal: with --margin, the exit code is 1 unless a larger
    regression is excluded.

    OLD may be a file of numbench export --to baseline. Writes no files.
    """
    from rich.text import Text

    compared = set_result(api.compare(**given_values(values)))
    terminal = console()
    for name, run in (("old", compared.old), ("new", compared.new)):
        about = f"{name}: {run}\n  {next(iter(run.signatures.values()), '')}\n"
        terminal.print(Text(about, style="dim"))
    terminal.print(_regression_table(compared))
    for note in compared.notes:
        terminal.print(f"! {note}", style="yellow", markup=False)
    print_lines(compared.summary)
    if output == "github":
        kind = "error" if compared.failures else "notice"
        for level, text in (
            *(("warning", note) for note in compared.notes),
            (kind, compared.summary),
        ):
            print_lines(f"::{level} title=numbench compare::{text.replace('%', '%25')}")
    if compared.failures:
        failures = "; ".join(compared.failures)
        raise NumbenchError(f"{values['new']} falls short of {values['old']}: {failures}")


def _regression_table(compared: Regression) -> Table:
    from rich.text import Text

    from numbench.reporting.comparisons import task_name
    from numbench.reporting.regression import excludes

    margin = compared.margin
    change = "New - old" if compared.measure == "scores" else "New / old"
    last = ("Holm p", "Verdict") if margin is None else ("At least", f"Regression > {margin:g}")
    table = plain_table("<>>>><", "Task", "Old", "New", change, *last, no_wrap=True)
    for task in compared.tasks:
        value, verdict = f"{task.p:.2g}", _VERDICTS.get(task.verdict, (task.verdict, ""))
        if margin is not None:
            is_excluded = excludes(task, margin)
            value = f"{task.at_least:+.1f}"
            verdict = ("excluded", "green") if is_excluded else ("not excluded", "red")
        table.add_row(task_name(task.task), *map(Text, task.texts), value, Text(*verdict))
    return table


@takes_arguments_of(api.show)
def show(
    *,
    kind: Annotated[
        list[str] | None,
        option("KIND", "Only this kind of error (see docs/scoring.md). Repeatable."),
    ] = None,
    item: Annotated[
        list[str] | None, option("PREFIX", "Only questions whose id starts with this. Repeatable.")
    ] = None,
    **values: Any,
) -> None:
    """Show questions with their answers and the first wrong digit.

    \b
    Examples:
      numbench show results/RUN --wrong --tasks mean --limit 5
      numbench show results/RUN --kind carry --kind swap
      numbench show results/RUN --item addition-9d0c

    Prints to the terminal and writes no files.
    """
    chosen = given_values(values | {"kinds": kind, "items": item})
    api.show(**chosen, on_selected=set_result)


@takes_arguments_of(api.merge)
def merge(**values: Any) -> None:
    """Merge the shards of a run, or other runs on different questions.

    \b
    Examples:
      numbench run --model gpt-6.2-sol --reasoning high --shard 1/2
      numbench run --model gpt-6.2-sol --reasoning high --shard 2/2
      numbench merge results/gpt-6.2-sol_high_paper_shard-* --out results/all
      numbench report results/all

    The runs must agree in everything that shapes an answer (model, level, settings, dataset,
    prompts) and share no questions. If shards are missing, merge the result with them later, or
    resume it with numbench run without --shard.

    Writes one run folder (--out); the merged runs stay as they are.
    """
    merged, out = api.merge(**values, on_progress=print_to_stderr), values["out"]
    done = merged.requests - merged.missing
    print(f"{out}: {done:,} of {merged.requests:,} requests have a response")
    if merged.missing:
        print(f"to request the others: the run's command without --shard, with --out {out}")
    print(f"next: numbench report {out}")


def demo(
    *,
    dataset: Annotated[str, option("NAME|FOLDER", "Name or folder.", "dataset")] = PAPER,
    out: Out = Path("results/demo"),
) -> None:
    """Run models that need no API key, and report their scores.

    The arithmetic baselines run on the dataset. If numbench[local] is installed, the bundled small
    language model runs on integers of at most 8 bits, next to bfloat16 arithmetic.

    \b
    Examples:
      numbench demo
      numbench demo --dataset my-dataset --out results/my-demo

    Writes to --out: a run folder per model and dataset, the integers, and the folders report/ and
    report-integers/ (see numbench report --help).
    """
    from numbench.demo import demo as run_demo

    # The report to open comes last.
    for result in reversed(run_demo(out, on_message=print_to_stderr, dataset=dataset)):
        _print_report(result)


def _print_report(result: ReportResult) -> None:
    from numbench.reporting.terminal import terminal_report

    screen = console()
    screen.print(terminal_report(result, screen.width, VERBOSE.get()))
    scores = "scores.parquet, " if result.data.runs else ""
    print(f"{result.out}: report.html, tables/, figures/, {scores}report.json")
    print(f"next: open {result.out / 'report.html'} in a browser")
