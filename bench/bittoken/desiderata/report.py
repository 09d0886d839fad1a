"""The report of `bittoken encodings`: tables, CSV files and a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from bittoken.desiderata.encoding_under_test import EncodingUnderTest, dataset_numbers
from bittoken.desiderata.figure import draw_figure
from bittoken.desiderata.measures import MEASURES, Measure
from bittoken.desiderata.token_counts import (
    PUBLISHED_COLUMNS,
    MeanTokensByTask,
    measured_token_counts,
    published_token_counts,
)
from bittoken.vocabulary import ENCODING_NAMES
from numbench import jsonl
from numbench.csv_files import read_csv
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput

TITLE = "Desiderata of number encodings, measured"
COUNTS_TITLE = "Mean tokens per sample, input + output"
NOTE = (
    "Empty: numbers written as text have no vectors (D3, D5–D8), or no trained score was given "
    "(D9)."
)
PUBLISHED_NOTE = "Published in the paper, for its own samples and layout:"

_CONSOLE_COLUMNS = 5
"""Encodings side by side on a terminal of 80 columns."""

Values = dict[str, dict[str, float | None]]
"""Name of the measure → name of the encoding → value; None if it does not apply."""


class EncodingReport(NamedTuple):
    """All measurements, the files written, and the summary for the terminal."""

    values: Values
    paths: list[Path]
    console_output: RenderableType


def measure_encodings(
    out: Path, dataset: str | Path = "v1", trained: Path | None = None
) -> EncodingReport:
    """Measure every encoding on the numbers of a dataset and write the report to the folder `out`.

    trained: a CSV file with columns encoding, task, score (percent).

    Raises BadInput if the CSV file or the dataset cannot be read.
    """
    scores = read_trained_scores(trained) if trained else {}
    opened = open_dataset(dataset)
    numbers = dataset_numbers(opened)
    tested = [EncodingUnderTest(name, numbers, scores.get(name)) for name in ENCODING_NAMES]
    values = {measure.name: {e.name: measure.of(e) for e in tested} for measure in MEASURES}
    counts, published = measured_token_counts(opened), published_token_counts()
    markdown = "\n\n".join(
        [
            f"# {TITLE}",
            f"Dataset `{opened.name}`. `docs/encodings.md` explains each row. {NOTE}",
            _markdown(_desiderata_table(values, tested)),
            f"# {COUNTS_TITLE}",
            _markdown(_counts_table(counts)),
            PUBLISHED_NOTE,
            _markdown(_counts_table(published)),
        ]
    )
    files = {
        "encodings.md": f"{markdown}\n".encode(),
        "encodings.csv": _desiderata_csv(values),
        "tokens_per_sample.csv": _counts_csv(counts),
        **{f"encodings.{form}": data for form, data in draw_figure(tested).items()},
    }
    for name, data in files.items():
        jsonl.write_atomically(out / name, data)
    parts = [
        _desiderata_table(values, tested[start : start + _CONSOLE_COLUMNS])
        for start in range(0, len(tested), _CONSOLE_COLUMNS)
    ]
    titles = (Text(title, style="bold") for title in (TITLE, f"\n{COUNTS_TITLE}"))
    console_output = Group(
        next(titles),
        *parts,
        NOTE,
        next(titles),
        _counts_table(counts),
        PUBLISHED_NOTE,
        _counts_table(published),
    )
    return EncodingReport(values, [out / name for name in files], console_output)


def format_value(measure: Measure, value: float | None) -> str:
    """Return a value as printed in the tables; empty if there is none."""
    if value is None:
        return ""
    if measure.format == "percent":
        # Never round 99.96 to 100.0, or 0.04 to 0.0.
        shown = min(max(value, 0.1), 99.9) if 0 < value < 100 else value
        return f"{shown:.1f}"
    if measure.format == "power":
        return f"1e{value:.0f}"
    if measure.format == "small":
        return f"{value:.0e}" if 0 < value < 0.01 else f"{value:.2f}"
    return f"{value:z.2f}"


def _desiderata_table(values: Values, tested: Sequence[EncodingUnderTest]) -> Table:
    """Return a row per measure and a column per encoding."""
    table = _table(["", "measure"], [encoding.display for encoding in tested])
    previous = ""
    for measure in MEASURES:
        cells = (format_value(measure, values[measure.name][e.name]) for e in tested)
        desideratum = measure.desideratum if measure.desideratum != previous else ""
        table.add_row(desideratum, measure.name, *cells)
        previous = measure.desideratum
    return table


def _counts_table(counts: MeanTokensByTask) -> Table:
    table = _table(["task"], PUBLISHED_COLUMNS)
    for task, row in counts.items():
        table.add_row(task, *(str(row[name]) for name in PUBLISHED_COLUMNS.values()))
    return table


def _table(names: Iterable[str], numbers: Iterable[str]) -> Table:
    """Return an empty table with columns of names and of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _markdown(table: Table) -> str:
    table.box, table.pad_edge = box.MARKDOWN, True
    console = Console(file=io.StringIO(), width=10_000, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line for line in capture.get().splitlines() if line.strip())


def _desiderata_csv(values: Values) -> bytes:
    """Return one row per measure and one column per encoding, unrounded; empty if missing."""
    rows = [[m.desideratum, m.name, *values[m.name].values()] for m in MEASURES]
    return _csv([["desideratum", "measure", *ENCODING_NAMES], *rows])


def _counts_csv(counts: MeanTokensByTask) -> bytes:
    """Return the measured token counts, one row per task and encoding."""
    rows = [[task, name, *tokens] for task, row in counts.items() for name, tokens in row.items()]
    return _csv([["task", "encoding", "input", "output"], *rows])


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def read_trained_scores(path: Path) -> dict[str, float]:
    """Return the mean score of each encoding in a CSV file with columns encoding, task, score.

    Raises BadInput if the file cannot be read, lacks a column, or contains an unknown encoding or a
    score that is not a percentage.
    """
    scores: dict[str, list[float]] = {}
    for line, row in read_csv(path, ("encoding", "task", "score")):
        name, text = row["encoding"], row["score"]
        if name not in ENCODING_NAMES:
            names = ", ".join(ENCODING_NAMES)
            raise BadInput(f"{path}, line {line}: unknown encoding {name!r}; use one of {names}")
        try:
            score = float(text)
        except ValueError:
            score = float("nan")
        if not 0 <= score <= 100:
            raise BadInput(f"{path}, line {line}: score {text!r} is not a percentage from 0 to 100")
        scores.setdefault(name, []).append(score)
    return {name: sum(values) / len(values) for name, values in scores.items()}
