"""Rows of the paper's three tables: values, values with bounds, and bounds alone."""

from __future__ import annotations

from collections.abc import Sequence

from numbench.reporting.table_model import (
    PUBLISHED_HEADING,
    Entry,
    Estimate,
    RowGroup,
    ScoreTableSpec,
    TextRow,
    format_estimate,
    format_value,
)

PUBLISHED_NOTE = (
    f"Rows under “{PUBLISHED_HEADING}” are the paper's published values (its own scoring and "
    "labels)."
)
BOUNDS_NOTE = (
    "Value with 95 % bounds over items: Wilson's interval with an effective number of items for "
    "scores, percentile bootstrap with 10,000 resamples for tokens."
)


def value_header(spec: ScoreTableSpec) -> list[str]:
    """Return the header of a table with one column per task."""
    return ["Model", "Reasoning", *(name for name, _ in spec.columns)]


def value_rows(spec: ScoreTableSpec, entries: Sequence[Entry]) -> list[list[str]]:
    """Return one row of values per entry."""
    return [
        [
            entry.name,
            entry.reasoning,
            *(format_value(e.value if e else None, spec.decimals) for e in _cells(spec, entry)),
        ]
        for entry in entries
    ]


def value_groups(
    spec: ScoreTableSpec, entries: Sequence[Entry], published: Sequence[Entry], heading: str
) -> list[RowGroup]:
    """Return measured and published values, in separate row groups."""
    groups = [RowGroup(heading, value_rows(spec, entries))]
    if published:
        groups.append(RowGroup(PUBLISHED_HEADING, value_rows(spec, published)))
    return groups


def estimate_rows(spec: ScoreTableSpec, entries: Sequence[Entry]) -> list[list[str]]:
    """Return one row per entry of values with bounds, `87.5 [85.4, 89.3]`."""
    return [
        [
            entry.name,
            entry.reasoning,
            *(format_estimate(spec, estimate) for estimate in _cells(spec, entry)),
        ]
        for entry in entries
    ]


def bounds_csv(spec: ScoreTableSpec, entries: Sequence[Entry]) -> tuple[TextRow, Sequence[TextRow]]:
    """Return header and rows with a lower and an upper bound per task."""
    header = ["Model", "Reasoning"]
    for name, _ in spec.columns:
        header += [f"{name}_low", f"{name}_high"]
    rows = []
    for entry in entries:
        row = [entry.name, entry.reasoning]
        for estimate in _cells(spec, entry):
            low, high = (estimate.low, estimate.high) if estimate else (None, None)
            row += [format_value(low, spec.decimals), format_value(high, spec.decimals)]
        rows.append(row)
    return header, rows


def _cells(spec: ScoreTableSpec, entry: Entry) -> list[Estimate | None]:
    estimates = entry.estimates(spec)
    return [estimates.get(task) for _, task in spec.columns]
