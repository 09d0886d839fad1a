"""A figure and a table: the mean length of the responses of each run."""

from statistics import mean

from matplotlib.figure import Figure

from numbench.reporting.figure_spec import FigureResult, FigureSpec, SkippedFigure
from numbench.reporting.report_data import ReportData
from numbench.reporting.table_model import RowGroup
from numbench.reporting.table_registry import TableContent, TableSpec


def mean_lengths(data: ReportData) -> dict[str, float]:
    """Return the mean number of characters per response of each run that has responses."""
    lengths = {
        run.label: [
            len(row.response.text)
            for rows in run.scored.rows.values()
            for row in rows
            if row.response is not None
        ]
        for run in data.runs
    }
    return {label: mean(values) for label, values in lengths.items() if values}


def draw(data: ReportData) -> FigureResult:
    """Draw one bar per run."""
    lengths = mean_lengths(data)
    if not lengths:
        return SkippedFigure("no run has a response")
    figure = Figure(figsize=(5.5, 1 + 0.3 * len(lengths)))
    axes = figure.subplots()
    axes.barh(list(lengths), list(lengths.values()))
    axes.set_xlabel("characters per response")
    return figure


def build(data: ReportData) -> TableContent:
    """Return one row per run."""
    rows = [[label, f"{length:.1f}"] for label, length in mean_lengths(data).items()]
    return TableContent(["Run", "Characters per response"], [RowGroup(data.heading, rows)])


FIGURE = FigureSpec("answer_length", "Mean length of the responses of each run.", draw)
TABLE = TableSpec("answer_length", "Response length", "Mean length of the responses.", build)
