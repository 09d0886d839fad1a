"""The report of `numbench encodings`: tables, CSV files and a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numbench import jsonl
from numbench.bittoken.desiderata.encodings_under_test import (
    EncodingUnderTest,
    all_encodings,
    dataset_numbers,
)
from numbench.bittoken.desiderata.figure import draw_figure
from numbench.bittoken.desiderata.table import (
    MEASURES,
    Measurements,
    format_measurement,
    measure_all,
    read_trained_scores,
)
from numbench.bittoken.desiderata.token_counts import (
    PUBLISHED_COLUMNS,
    MeanTokensByTask,
    measured_token_counts,
    published_token_counts,
)
from numbench.dataset.store import open_dataset

TITLE = "Desiderata of number encodings, measured"
COUNTS_TITLE = "Mean tokens per sample, input + output"
MEASURED, PUBLISHED = "measured", "published (paper)"
NOTE = (
    "Empty: numbers written as text have no vectors (D3, D5–D8), or no trained score was given "
    "(D9)."
)

Rows = list[list[str]]


class EncodingReport(NamedTuple):
    """All measurements, the files written, and the summary for the terminal."""

    measurements: Measurements
    counts: MeanTokensByTask
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
    encodings, numbers = all_encodings(), dataset_numbers(opened)
    measurements = measure_all(encodings, numbers, scores)
    counts, published = measured_token_counts(opened), published_token_counts()
    markdown = render_markdown(measurements, encodings, counts, published, opened.name)
    figure = draw_figure(encodings, numbers)
    files = {
        "encodings.md": markdown.encode(),
        "encodings.csv": desiderata_csv(measurements, encodings).encode(),
        "tokens_per_sample.csv": counts_csv(counts).encode(),
        **{f"encodings.{file_format}": data for file_format, data in figure.items()},
    }
    for name, data in files.items():
        jsonl.write_atomically(out / name, data)
    console_output = render_console(measurements, encodings, counts, published)
    return EncodingReport(measurements, counts, [out / name for name in files], console_output)


def desiderata_rows(measurements: Measurements, encodings: Sequence[EncodingUnderTest]) -> Rows:
    """Return rows of desideratum (empty if repeated), measure, and one value per encoding."""
    rows: Rows = []
    previous = ""
    for measure in MEASURES:
        desideratum = measure.desideratum if measure.desideratum != previous else ""
        values = measurements[measure.name]
        cells = [format_measurement(measure, values[encoding.name]) for encoding in encodings]
        rows.append([desideratum, measure.name, *cells])
        previous = measure.desideratum
    return rows


def count_rows(counts: MeanTokensByTask) -> Rows:
    """Return rows of the task, and `input + output` per encoding."""
    return [
        [task, *(str(row[name]) for name in PUBLISHED_COLUMNS.values())]
        for task, row in counts.items()
    ]


def render_markdown(
    measurements: Measurements,
    encodings: Sequence[EncodingUnderTest],
    counts: MeanTokensByTask,
    published: MeanTokensByTask,
    dataset: str,
) -> str:
    """Return a page with the desiderata, the measured and the published token counts."""
    header = ["", "measure", *(encoding.display for encoding in encodings)]
    count_header = ["task", *PUBLISHED_COLUMNS]
    parts = [
        f"# {TITLE}",
        f"Dataset `{dataset}`. `docs/encodings.md` explains each row. {NOTE}",
        _markdown_table(header, desiderata_rows(measurements, encodings), 2),
        f"# {COUNTS_TITLE}",
        f"## {MEASURED} on `{dataset}`",
        _markdown_table(count_header, count_rows(counts), 1),
        f"## {PUBLISHED}",
        "From the paper, for its own samples and layout.",
        _markdown_table(count_header, count_rows(published), 1),
    ]
    return "\n\n".join(parts) + "\n"


def desiderata_csv(measurements: Measurements, encodings: Sequence[EncodingUnderTest]) -> str:
    """Return one row per measure and one column per encoding, unrounded; empty if missing."""
    header = ["desideratum", "measure", *(encoding.name for encoding in encodings)]
    rows = (
        [
            measure.desideratum,
            measure.name,
            *(measurements[measure.name][e.name] for e in encodings),
        ]
        for measure in MEASURES
    )
    return _csv(header, rows)


def counts_csv(counts: MeanTokensByTask) -> str:
    """Return the measured token counts, one row per task and encoding."""
    rows = (
        [task, name, tokens.input, tokens.output]
        for task, row in counts.items()
        for name, tokens in row.items()
    )
    return _csv(["task", "encoding", "input", "output"], rows)


def render_console(
    measurements: Measurements,
    encodings: Sequence[EncodingUnderTest],
    counts: MeanTokensByTask,
    published: MeanTokensByTask,
) -> RenderableType:
    """Return both tables, at most 80 columns wide."""
    table = _console_table(["", "", *(encoding.short_name for encoding in encodings)], 2)
    for cells in desiderata_rows(measurements, encodings):
        table.add_row(*cells)
    tokens = _console_table(["Task", *PUBLISHED_COLUMNS], 1)
    for cells in count_rows(counts):
        tokens.add_row(*cells)
    tokens.add_row(Text(PUBLISHED, style="bold dim"))
    for cells in count_rows(published):
        tokens.add_row(*cells, style="dim")
    titles = (Text(title, style="bold") for title in (TITLE, f"\n{COUNTS_TITLE}"))
    return Group(next(titles), table, Text(NOTE), next(titles), tokens)


def _console_table(header: Sequence[str], text_columns: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column, name in enumerate(header):
        table.add_column(name, justify="left" if column < text_columns else "right", no_wrap=True)
    return table


def _markdown_table(header: Sequence[str], rows: Rows, text_columns: int) -> str:
    """Return a table whose first `text_columns` columns are left-aligned."""
    lines = [list(header), *rows]
    widths = [max(3, *map(len, cells)) for cells in zip(*lines, strict=True)]

    def format_line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if column < text_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if column < text_columns else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join([format_line(header), format_line(rule), *map(format_line, rows)])


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
