"""The commands that use responses: report, show, compare, merge, demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numbench.cli.options import (
    DatasetName,
    Out,
    Protocol,
    Tasks,
    console,
    option,
    plain_table,
    print_to_stderr,
)
from numbench.errors import NumbenchError
from numbench.records import PAPER
from numbench.runner.spec import listed_values, parse_tasks

if TYPE_CHECKING:
    from rich.table import Table

    from numbench.reporting.build import ReportResult
    from numbench.reporting.regression import Regression

_VERDICTS = {
    "better": ("better", "green"),
    "worse": ("worse", "red"),
    "not significantly different": ("not significant", ""),
}


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Run folders, or folders of runs. [default: results/, without the demo's]"
        ),
    ] = None,
    *,
    protocol: Protocol = "exact",
    references: Annotated[
        bool,
        typer.Option(
            show_default=False,
            help="Compare runs on the dataset paper with the published models. [default: yes]",
        ),
    ] = True,
    out: Out = Path("results/report"),
    formats: Annotated[str, option("LIST", "Formats of the figures: svg, png, pdf.")] = "svg",
) -> None:
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
    from numbench.reporting.build import report as write_report

    figures = listed_values(formats)
    _print_report(write_report(runs or None, protocol, references, out, figures, print_to_stderr))


def compare(
    old: Annotated[Path, typer.Argument(help="Run folder to compare with.")],
    new: Annotated[Path, typer.Argument(help="Run folder of the same kind.")],
    *,
    margin: Annotated[
        float | None, option("POINTS", "Fail unless a regression larger than this is excluded.")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Do not fail for missing tasks or answers.")
    ] = False,
    protocol: Protocol = "exact",
) -> None:
    """Compare a new run with an old one; fail if it is worse.

    \b
    Examples:
      numbench compare results/OLD results/NEW
      numbench compare results/OLD results/NEW --margin 5

    Runs are compared on the questions that both answered, task by task and by the mean over the
    tasks (All); horizon runs by the problem size at 50%. The exit code is 1 if the new run is
    worse, or if tasks or answers are missing. "Not significantly different" does not mean equal:
    with --margin, the exit code is 1 unless a larger regression is excluded in every task.

    Writes no files.
    """
    from numbench.reporting.regression import compare as compare_runs

    result = compare_runs(old, new, protocol, margin, partial)
    terminal = console()
    terminal.print(_regression_table(result))
    for note in result.notes:
        terminal.print(f"! {note}", style="yellow", markup=False)
    if result.failures:
        raise NumbenchError(f"{new} falls short of {old}: {'; '.join(result.failures)}")


def _regression_table(result: Regression) -> Table:
    from rich.text import Text

    from numbench.reporting.comparisons import task_name
    from numbench.reporting.regression import excludes

    margin = result.margin
    change = "New - old" if result.measure == "scores" else "New / old"
    last = ("Holm p", "Verdict") if margin is None else ("At least", f"Regression > {margin:g}")
    table = plain_table("<>>>><", "Task", "Old", "New", change, *last, no_wrap=True)
    for task in result.tasks:
        value, verdict = f"{task.p:.2g}", _VERDICTS.get(task.verdict, (task.verdict, ""))
        if margin is not None:
            is_excluded = excludes(task, margin)
            value = f"{task.at_least:+.1f}"
            verdict = ("excluded", "green") if is_excluded else ("not excluded", "red")
        table.add_row(task_name(task.task), *map(Text, task.texts), value, Text(*verdict))
    return table


def show(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    *,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only wrong answers.")] = False,
    tasks: Tasks = "all",
    kind: Annotated[
        list[str] | None,
        option("KIND", "Only this kind of error (see docs/scoring.md). Repeatable."),
    ] = None,
    difficulty: Annotated[
        tuple[int, int] | None,
        option("MIN MAX", "Only questions with a difficulty δ in this range."),
    ] = None,
    item: Annotated[
        list[str] | None, option("PREFIX", "Only questions whose id starts with this. Repeatable.")
    ] = None,
    limit: Annotated[
        int | None, option("N", "At most N questions per task. [default: all]")
    ] = None,
    protocol: Protocol = "exact",
) -> None:
    """Show questions with their answers and the first wrong digit.

    \b
    Examples:
      numbench show results/RUN --wrong --tasks mean --limit 5
      numbench show results/RUN --kind carry --kind swap
      numbench show results/RUN --item addition-9d0c

    Prints to the terminal and writes no files.
    """
    from numbench.item_view import ItemFilter, show_items
    from numbench.reporting.regression import run_folder

    item_filter = ItemFilter(parse_tasks(tasks), wrong, kind, difficulty, item, limit)
    terminal = console()
    for text in show_items(run_folder(run), item_filter, protocol):
        terminal.print(text, soft_wrap=True)


def merge(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    *,
    out: Annotated[Path, option("FOLDER", "Run folder to write.")],
) -> None:
    """Merge the shards of a run, or other runs on different questions.

    \b
    Examples:
      numbench run --model gpt-6.2-sol --reasoning high --shard 1/2
      numbench run --model gpt-6.2-sol --reasoning high --shard 2/2
      numbench merge results/gpt-5_high_v1_shard-* --out results/gpt-5_high_v1
      numbench report results/gpt-5_high_v1

    The runs must agree in everything that shapes an answer (model, level, settings, dataset,
    prompts) and share no questions. If shards are missing, merge the result with them later, or
    resume it with numbench run without --shard.

    Writes one run folder (--out); the merged runs stay as they are.
    """
    from numbench.journal_merge import merge_runs

    merged = merge_runs(runs, out, on_message=print_to_stderr)
    done = merged.requests - merged.missing
    print(f"{out}: {done:,} of {merged.requests:,} requests have a response")
    if merged.missing:
        print(f"to request the others: the run's command without --shard, with --out {out}")
    print(f"next: numbench report {out}")


def demo(*, dataset: DatasetName = PAPER, out: Out = Path("results/demo")) -> None:
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
    screen.print(terminal_report(result, screen.width))
    scores = "scores.parquet, " if result.data.runs else ""
    print(f"{result.out}: report.html, tables/, figures/, {scores}report.json")
    print(f"next: open {result.out / 'report.html'} in a browser")
