"""The commands on datasets: generate, audit, describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.options import Engine, Format, Split, Tasks, console, note

if TYPE_CHECKING:
    from bench.dataset.generate import Finished


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
        note("interrupted; the same command goes on with what is missing")
        raise typer.Exit(130) from None
    manifest = done.dataset.manifest
    items = sum(entry.items for entry in manifest.files)
    state = "already there, every file as its manifest says" if done.unchanged else "written"
    print(f"{done.dataset.path}: {items} items, {state} (sha256 {manifest.sha256})")


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
    console().print(audit_report(found), soft_wrap=True)
    if out is not None:
        write_audit(found, out)


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


def _say_finished(finished: Finished) -> None:
    entry, done, of, rate, left = finished
    rest = f", {left:.0f} s left" if done < of else ""
    note(f"{entry.file}: {entry.items:,} items ({done}/{of} files, {rate:,.0f} rows/s{rest})")
