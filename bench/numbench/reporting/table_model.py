"""Tables as data: estimates, entries, the score tables' columns, and CSV, Markdown and LaTeX."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from numbench.csv_files import encode_csv
from numbench.reporting.escape import escape_latex, escape_markdown
from numbench.tasks import PAPER_TASKS, TASKS

LEVELS = ("maximal", "high", "medium", "low", "minimal", "none")
"""Reasoning levels, highest first."""

PUBLISHED_HEADING = "published (paper)"


class Estimate(NamedTuple):
    """A mean (percent, or tokens) with 95 % bounds, which are None if unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def value_and_bounds(self) -> tuple[float, float, float] | None:
        """Value, lower and upper bound; None if the bounds are unknown."""
        if self.low is None or self.high is None:
            return None
        return self.value, self.low, self.high

    @property
    def bounds_or_value(self) -> tuple[float, float, float]:
        """Value, lower and upper bound, with the value as both bounds if they are unknown."""
        return self.value_and_bounds or (self.value, self.value, self.value)


class Entry(NamedTuple):
    """A row of the score tables: a model at a reasoning level.

    tables: table → task → estimate. note: distinguishes entries of the same model and level,
    otherwise empty.
    """

    model: str
    reasoning: str
    tables: dict[str, dict[str, Estimate]]
    published: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.model} ({self.note})" if self.note else self.model

    def estimates(self, spec: ScoreTableSpec) -> dict[str, Estimate]:
        """Return task → estimate of a score table, empty if there is none."""
        return self.tables.get(spec.name, {})


class RankedEntry(NamedTuple):
    """An entry with its mean over the tasks, None if it lacks one of them.

    run: index of the run, None for a published entry.
    """

    entry: Entry
    mean: Estimate | None
    run: int | None


class ScoreTableSpec(NamedTuple):
    """One of the paper's tables.

    columns: pairs of CSV heading and task, for the paper's tasks. numeric_only: whether the
    table has only tasks with a numeric answer.
    """

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    decimals: int
    caption: str
    numeric_only: bool = False

    def with_tasks(self, tasks: Iterable[str]) -> ScoreTableSpec:
        """Return the table with a further column for each of `tasks` that the paper lacks."""
        further = tuple(
            (TASKS[task].display, task)
            for task in tasks
            if task not in PAPER_TASKS
            and (TASKS[task].metric == "log_smape" or not self.numeric_only)
        )
        return self._replace(columns=(*self.columns, *further))


_PAPER_COLUMN_ORDER = (
    "addition",
    "multiplication",
    "division",
    "mean",
    "std",
    "minmax",
    "interval",
    "sorting",
    "exponentiation",
)


def _columns(tasks: Iterable[str], **renamed: str) -> tuple[tuple[str, str], ...]:
    return tuple((renamed.get(task, PAPER_TASKS[task].display), task) for task in tasks)


LOG_SMAPE = ScoreTableSpec(
    "log_smape",
    "log-sMAPE",
    _columns(_PAPER_COLUMN_ORDER, sorting="Sort"),
    1,
    "Mean log-sMAPE in percent (100: every answer is correct to 15 significant digits, except for "
    "one or two units of the last one); for the comparison tasks MinMax, Interval and Sorting, "
    "exact-match accuracy in percent.",
)
EXACT_MATCH = ScoreTableSpec(
    "exact_match",
    "Exact match",
    _columns(task for task in _PAPER_COLUMN_ORDER if PAPER_TASKS[task].metric == "log_smape"),
    1,
    "Exact-match accuracy in percent: all of the first 15 significant digits are correct.",
    numeric_only=True,
)
TOKENS = ScoreTableSpec(
    "tokens",
    "Tokens",
    _columns(_PAPER_COLUMN_ORDER),
    0,
    "Mean number of generated tokens per item, including reasoning, over the responses with a "
    "known token count; empty if unknown.",
)
SCORE_TABLES = (LOG_SMAPE, EXACT_MATCH, TOKENS)


class TableContext(NamedTuple):
    """Heading of the measured rows, and the notes of every table."""

    heading: str
    notes: tuple[str, ...]


def one_line(text: str) -> str:
    """Return an untrusted name on one line: control and format characters become spaces."""
    clean = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    return " ".join(clean.split()) or "unnamed"


def format_value(value: float | None, decimals: int) -> str:
    """Format a number as the paper prints it; empty if it is None, never `-0.0`."""
    return "" if value is None else f"{value:z.{decimals}f}"


def format_bounds(spec: ScoreTableSpec, estimate: Estimate) -> str:
    """Format bounds as `[85.4, 89.3]`; empty if they are unknown."""
    if estimate.low is None or estimate.high is None:
        return ""
    low, high = (format_value(value, spec.decimals) for value in (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def format_estimate(spec: ScoreTableSpec, estimate: Estimate | None) -> str:
    """Format as `87.5 [85.4, 89.3]`, without bounds if unknown; empty without a value."""
    if estimate is None:
        return ""
    return f"{format_value(estimate.value, spec.decimals)} {format_bounds(spec, estimate)}".rstrip()


def level_rank(level: str) -> int:
    """Return the index of a reasoning level in `LEVELS`, their number if it is unknown."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def model_names(entries: Iterable[Entry]) -> list[str]:
    """Return the models of the entries in order, each once."""
    return list(dict.fromkeys(entry.model for entry in entries))


TextRow = Sequence[str]

_MAX_ROWS_PER_PAGE = 45


class RowGroup(NamedTuple):
    """Rows with a common heading."""

    heading: str
    rows: Sequence[TextRow]


class TextTable(NamedTuple):
    """A table as text. The first `text_columns` columns are text, the others numbers.

    notes: paragraphs above the table (Markdown) or in its caption (LaTeX).
    """

    name: str
    title: str
    header: TextRow
    text_columns: int
    row_groups: Sequence[RowGroup]
    notes: Sequence[str]

    @property
    def rows(self) -> list[TextRow]:
        """The rows of all groups."""
        return [row for group in self.row_groups for row in group.rows]


def to_csv(header: TextRow, rows: Sequence[TextRow]) -> str:
    """Return the header and the rows as CSV, in which no text is a formula."""
    return encode_csv([header, *rows])


def to_markdown(table: TextTable) -> str:
    """Return title, notes, and one aligned Markdown table per row group."""
    parts = [f"# {escape_markdown(table.title)}", *map(escape_markdown, table.notes)]
    for group in table.row_groups:
        parts += [f"## {escape_markdown(group.heading)}", _markdown_rows(table, group.rows)]
    return "\n\n".join(parts) + "\n"


def _markdown_rows(table: TextTable, rows: Sequence[TextRow]) -> str:
    lines = [[escape_markdown(cell) for cell in row] for row in (table.header, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells: TextRow) -> str:
        padded = [
            cell.ljust(width) if column < table.text_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rules = [
        "-" * width if column < table.text_columns else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join([line(lines[0]), line(rules), *map(line, lines[1:])])


def to_latex(table: TextTable) -> str:
    """Return a booktabs table for \\input; a long one breaks across pages."""
    is_long = len(table.rows) > _MAX_ROWS_PER_PAGE
    return _long_table(table) if is_long else _floating_table(table)


def _floating_table(table: TextTable) -> str:
    lines = [
        "% Needs \\usepackage{booktabs}.",
        r"\begin{table}[ht]",
        r"    \centering",
        r"    \footnotesize",
        r"    \setlength{\tabcolsep}{4pt}",
        rf"    \begin{{tabular}}{{{_alignment(table)}}}",
        r"    \toprule",
        "    " + _latex_row(table.header),
        *_latex_groups(table),
        r"    \bottomrule",
        r"    \end{tabular}",
        "    " + _caption(table),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _long_table(table: TextTable) -> str:
    lines = [
        "% Needs \\usepackage{booktabs,longtable}.",
        r"{\scriptsize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{longtable}}{{{_alignment(table)}}}",
        "    " + _caption(table) + r" \\",
        r"    \toprule",
        "    " + _latex_row(table.header),
        r"    \midrule",
        r"    \endhead",
        *_latex_groups(table)[1:],
        r"    \bottomrule",
        r"\end{longtable}}",
    ]
    return "\n".join(lines) + "\n"


def _latex_groups(table: TextTable) -> list[str]:
    """Return the lines of the row groups, each after a rule and its heading."""
    lines = []
    for group in table.row_groups:
        heading = rf"\emph{{{escape_latex(group.heading)}}}"
        heading = rf"\multicolumn{{{len(table.header)}}}{{l}}{{{heading}}} \\"
        lines += [r"    \midrule", f"    {heading}"]
        lines += ["    " + _latex_row(row) for row in group.rows]
    return lines


def _alignment(table: TextTable) -> str:
    return "l" * table.text_columns + "r" * (len(table.header) - table.text_columns)


def _caption(table: TextTable) -> str:
    label = table.name.replace("_", "-")
    notes = " ".join(escape_latex(note) for note in table.notes)
    return rf"\caption{{{notes}}}\label{{tab:{label}}}"


def _latex_row(cells: TextRow) -> str:
    return " & ".join(escape_latex(cell) for cell in cells) + r" \\"
