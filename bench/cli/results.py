"""The commands on what models answered: report, import, rescore, show, demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.options import Protocol, Tasks, console, note
from bench.errors import NumbenchError

if TYPE_CHECKING:
    from bench.report import ReportResult


def report(
    runs: Annotated[list[Path] | None, typer.Argument(help="[default: all under results/]")] = None,
    protocol: Annotated[
        Protocol, typer.Option(help="Exact truth, or the study's own scoring.")
    ] = Protocol.exact,
    published: Annotated[
        bool, typer.Option("--published/--no-published", help="Show the paper's figures beside.")
    ] = True,
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("results/report"),
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="OLD NEW", help="Write nothing; fail where run NEW is worse by more than noise."
        ),
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(metavar="POINTS", help="With --compare: and by more than so many points."),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="With --compare: compare what both have.")
    ] = False,
) -> None:
    """Score runs and write tables and figures, or compare two runs."""
    if compare:
        if runs:
            raise typer.BadParameter("--compare takes two runs, OLD and NEW, and no others")
        _compare(*compare, protocol, fail_below, partial)
        return
    if fail_below is not None:
        raise typer.BadParameter("--fail-below needs --compare OLD NEW")
    if partial:
        raise typer.BadParameter("--partial needs --compare OLD NEW")
    from bench.report import report as write_report

    done = write_report(runs or None, protocol=protocol.value, published=published, out=out)
    _print_report(done)


def import_(
    folder: Annotated[Path, typer.Argument(help="Folder with the study's CSV files.")],
    out: Annotated[Path, typer.Option(help="Where the runs go.")] = Path("results/study"),
) -> None:
    """Turn the study's raw files into a dataset and one run per model and level."""
    from bench.study import import_study

    runs = import_study(folder, out, say=note)
    for path in runs:
        print(path)
    print(f"{out}: {len(runs)} runs; next: numbench report {out} --protocol paper")


def rescore(
    folder: Annotated[Path, typer.Argument(help="Folder with the study's CSV files.")],
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("results/rescored-study"),
) -> None:
    """Score the study's responses again under exact truth, and write a page of what changes."""
    from bench.rescore import rescore as rescore_study

    done = rescore_study(folder, out, say=note)
    (labels, wrong), (cells, right, printed) = done.labels, done.cells
    print(f"{wrong} of {labels} published labels are wrong")
    if cells:
        print(f"{right} of {printed} published scores reproduced, {cells} scored again")
    else:
        print("no responses among these files: the labels are audited, no score is taken again")
    for path in (*done.reports, done.page):
        print(path)


def show(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    wrong: Annotated[bool, typer.Option("--wrong", help="Only wrong answers.")] = False,
    tasks: Tasks = "all",
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only answers wrong in this way (docs/errors.md). Repeatable."),
    ] = None,
    difficulty: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Only items of this difficulty.", metavar="LEAST MOST"),
    ] = None,
    item: Annotated[
        list[str] | None, typer.Option(help="Only items whose id begins so. Repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most N items per task.")] = None,
    protocol: Annotated[
        Protocol, typer.Option(help="Exact truth, or the study's own scoring.")
    ] = Protocol.exact,
) -> None:
    """Show items, answers, and where the digits part.

    \b
    numbench show results/RUN --wrong --tasks mean --limit 5
    numbench show results/RUN --kind carry --kind swap
    numbench show results/RUN --item addition-9d0c
    """
    from bench.dataset.settings import parse_tasks
    from bench.show import Wanted
    from bench.show import show as show_items

    chosen = None if tasks == "all" else parse_tasks(tasks.split(","))
    wanted = Wanted(chosen, wrong, kind, difficulty, item, limit)
    shown = console()
    for text in show_items(run, wanted, protocol.value):
        shown.print(text, soft_wrap=True)


def demo(
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("results/demo"),
) -> None:
    """Ask v1 of whoever needs no key, and report them beside the published models.

    The arithmetic baselines and, with numbench[local] installed, the small model that comes along.
    """
    from bench.demo import demo as run_demo

    _print_report(run_demo(out, say=note))


def _compare(
    old: Path, new: Path, protocol: Protocol, fail_below: float | None, partial: bool
) -> None:
    from bench.report import compare
    from bench.report.terminal import regression_table

    # Also false for what is not a number.
    if fail_below is not None and not fail_below >= 0:
        raise typer.BadParameter(f"--fail-below {fail_below}: give points, 0 or more")
    found = compare(old, new, protocol.value, fail_below, partial)
    console().print(regression_table(found))
    if found.falls:
        raise NumbenchError(f"{new} falls short of {old}: {'; '.join(found.falls)}")


def _print_report(done: ReportResult) -> None:
    from bench.report.terminal import terminal_table

    console().print(terminal_table(done))
    print(f"{done.out}: tables/, figures/, scores.parquet, report.json, report.html")
