"""The commands that use runs: report, show, compare, merge, demo, and exchange with others."""

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


_STYLES = {"better": "green", "worse": "red"}


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
    from numbench.reporting.answer import answers

    result = api.report(**given_values(values), on_progress=print_to_stderr)
    sentences = [text for known in answers(result.data) for text in known.sentences]
    set_result({"out": result.out, "sentences": sentences, "warnings": result.warnings})
    _print_report(result)


@takes_arguments_of(api.compare)
def compare(
    *,
    output: Annotated[
        Literal["text", "github"],
        typer.Option("--format", help="github: text with GitHub Actions annotations."),
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
    by task; horizon runs by the problem size at 50%, task by task. The exit code is 1 if the mean,
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
    for note in filter(None, (compared.reach, *compared.notes)):
        terminal.print(f"! {note}", style="yellow", markup=False)
    print_lines(compared.summary)
    if output == "github":
        kind = "error" if compared.failures else "notice"
        texts = [*(("warning", note) for note in compared.notes), (kind, compared.summary)]
        for level, text in texts:
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
        value, style = f"{task.p:.2g}", _STYLES.get(task.verdict, "")
        verdict: tuple[str, str] = (task.verdict if style else "not significant", style)
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
    merged = set_result(api.merge(**values, on_progress=print_to_stderr))
    out = values["out"]
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


@takes_arguments_of(api.export)
def export(**values: Any) -> None:
    """Write runs or a dataset in the format of another tool.

    \b
    Examples:
      numbench export --to inspect --out logs results/RUN
      numbench export --to lm-eval --out tasks v1
      numbench export --to huggingface --out hub v1
      numbench export --to baseline --out baseline.json results/RUN

    Writes to --out, and ends with the command that uses the result.
    """
    exported = set_result(api.export(**given_values(values)))
    print_lines(*exported.files, f"next: {exported.next_command}")


@takes_arguments_of(api.import_logs)
def import_(**values: Any) -> None:
    """Convert Inspect logs to runs.

    \b
    Examples:
      numbench import logs                      .eval and .json files
      numbench report results/imported

    Logs must be from numbench's own task. Data missing from a log is unknown in the run. Writes one
    run folder per log.
    """
    runs = set_result(api.import_logs(**given_values(values)))
    print_lines(*runs, f"{values['out']}: {_count(len(runs), 'run')}")
    print_lines(f"next: numbench report {values['out']}")


@takes_arguments_of(api.verify)
def verify(**values: Any) -> None:
    """Check that runs are complete, intact and plausible.

    Checks every line of the journal, the hashes of questions and prompts, that questions are
    answered once per sample, and whether token counts and answers are plausible. An error makes a
    run invalid (exit code 1); a warning does not.

    \b
    Examples:
      numbench verify results/RUN
      numbench verify submissions --complete   for a leaderboard
      numbench verify results/RUN --repair   keep what can be read

    With --repair, only damaged lines are repaired; resume the run to request lost answers again.
    Writes no files without --repair.
    """
    results = set_result(api.verify(**given_values(values), on_progress=print_to_stderr))
    for each in results:
        state = "valid" if each.is_valid else "NOT VALID"
        if values["repair"]:
            state = "repaired" if len(each.findings) > 1 else "nothing to repair"
        print_lines(f"{each.path}: {state}")
        for severity, check, text in each.findings:
            print_lines(f"  {severity:<8} {check:<12} {text}")
    if invalid := sum(not each.is_valid for each in results):
        verb = "is" if invalid == 1 else "are"
        raise NumbenchError(f"{invalid} of {_count(len(results), 'run')} {verb} not valid")


@takes_arguments_of(api.write_leaderboard)
def leaderboard(**values: Any) -> None:
    """Write a leaderboard: a static web site of runs.

    Runs that lack more than 1% of the answers to a task are listed below, without ranks.

    \b
    Examples:
      numbench leaderboard results/RUN1 results/RUN2
      numbench leaderboard submissions --out leaderboard   folder of checked runs

    Writes to --out: index.html, about.html, a page per run, and data/ (report.json,
    scores.parquet, tables as CSV, checksums of the run folders). The pages need no server, no
    script and no other host.
    """
    site = set_result(api.write_leaderboard(**given_values(values), on_progress=print_to_stderr))
    runs = _count(site.runs, "run") if site.runs else "no runs yet"
    print_lines(f"{site.out}: {runs}, {_count(site.pages, 'page')}")
    if site.incomplete:
        verb = "is" if len(site.incomplete) == 1 else "are"
        names = ", ".join(site.incomplete)
        count = _count(len(site.incomplete), "run")
        print_lines(f"{count} {verb} incomplete and not ranked: {names}")
    print_lines(f"next: open {site.out / 'index.html'} in a browser")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
