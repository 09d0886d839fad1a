"""The summary of a report: one row per run, ranked by the mean score over the tasks."""

from __future__ import annotations

from numbench.reporting.comparison_tables import format_rank_set, not_compared_notes
from numbench.reporting.comparisons import OVERALL
from numbench.reporting.entries import MeasuredRun, dataset_label, mean_of_tasks
from numbench.reporting.pareto_points import mean_cost
from numbench.reporting.published_rows import MARK
from numbench.reporting.report_data import ReportData
from numbench.reporting.table_model import (
    LOG_SMAPE,
    PUBLISHED_HEADING,
    TOKENS,
    Estimate,
    RankedEntry,
    RowGroup,
    format_estimate,
    format_value,
)
from numbench.reporting.table_spec import TableContent, TableSpec
from numbench.scoring.completeness import completeness

SUMMARY_HEADER = (
    "Model",
    "Reasoning",
    "Mean of tasks",
    "Ranks",
    "Tokens",
    "USD per 1,000",
    "Answered",
)
SUMMARY_CSV_HEADER = (
    *("Model", "Reasoning", "Mean of tasks", "Lower", "Upper", "Best rank", "Worst rank"),
    *("Tokens", "USD per 1,000", "Answered", "Samples"),
)
SUMMARY_CAPTION = (
    "Mean score over the tasks, 0 to 100; possible ranks (95 % confidence for all runs "
    "together); generated tokens per answer; US dollars per 1,000 items; samples with an "
    "answer, of all in the dataset."
)


def ranked_runs(data: ReportData) -> list[int]:
    """Return the indices of the runs, the highest mean first, and those without a mean last.

    Runs on different datasets cannot be ranked together: those on the dataset with most tasks come
    first, and of these, those on the first dataset.
    """
    overall, datasets = data.comparisons.overall, list(map(_dataset, data.runs))

    def place(index: int) -> tuple[int, int, float]:
        tasks = len(data.runs[index].scored.dataset.tasks)
        return -tasks, datasets.index(datasets[index]), _descending(overall[index])

    return sorted(range(len(data.runs)), key=place)


def ranking(data: ReportData) -> list[RankedEntry]:
    """Return the runs in the order of `ranked_runs`, then the published entries by their mean."""
    runs = [
        RankedEntry(data.runs[index].entry, data.comparisons.overall[index], index)
        for index in ranked_runs(data)
    ]
    means = (mean_of_tasks(entry, LOG_SMAPE, data.tasks) for entry in data.published)
    published = [
        RankedEntry(entry, None if mean is None else Estimate(mean), None)
        for entry, mean in zip(data.published, means, strict=True)
    ]
    return runs + sorted(published, key=lambda row: _descending(row.mean))


def _descending(mean: Estimate | None) -> float:
    return float("inf") if mean is None else -mean.value


def summary_rows(data: ReportData) -> list[list[str]]:
    """Return one row per run, in the order of `ranked_runs`, for `SUMMARY_HEADER`."""
    return [_row(data, index) for index in ranked_runs(data)]


def published_summary_rows(data: ReportData) -> list[list[str]]:
    """Return one row per published entry with a mean, the highest first, without a rank."""
    mark = f" {MARK}" if data.published_note else ""
    return [
        [
            row.entry.name + mark,
            row.entry.reasoning,
            format_estimate(LOG_SMAPE, row.mean),
            "",
            _format_tokens(mean_of_tasks(row.entry, TOKENS, data.tasks)),
            "",
            "",
        ]
        for row in published_ranking(data)
    ]


def published_ranking(data: ReportData) -> list[RankedEntry]:
    """Return the published entries with a mean, the highest first."""
    return [row for row in ranking(data) if row.entry.published and row.mean is not None]


def summary_csv_rows(data: ReportData) -> list[list[str]]:
    """Return one row per run, in the same order, for `SUMMARY_CSV_HEADER`."""
    return [_csv_row(data, index) for index in ranked_runs(data)]


def _row(data: ReportData, index: int) -> list[str]:
    run, mean = data.runs[index], data.comparisons.overall[index]
    tokens, cost = _means(data, run)
    return [
        run.entry.name,
        run.entry.reasoning,
        format_estimate(LOG_SMAPE, mean),
        format_rank_set(data.comparisons.rank_sets[index].get(OVERALL)),
        _format_tokens(tokens),
        format_value(cost, 2),
        str(completeness(run.scored)),
    ]


def _csv_row(data: ReportData, index: int) -> list[str]:
    run, mean = data.runs[index], data.comparisons.overall[index]
    ranks = data.comparisons.rank_sets[index].get(OVERALL)
    tokens, cost = _means(data, run)
    known = completeness(run.scored)
    return [
        run.entry.name,
        run.entry.reasoning,
        *(format_value(value, LOG_SMAPE.decimals) for value in mean or (None, None, None)),
        *("" if ranks is None else str(rank) for rank in (ranks or (0, 0))),
        format_value(tokens, 1),
        format_value(cost, 4),
        str(known.answered),
        str(known.total),
    ]


def _means(data: ReportData, run: MeasuredRun) -> tuple[float | None, float | None]:
    """Return tokens per answer and dollars per 1,000 items over the tasks, None if not known."""
    tokens = mean_of_tasks(run.entry, TOKENS, data.tasks)
    return tokens, mean_cost(run.scored, data.tasks)


def _format_tokens(tokens: float | None) -> str:
    return "" if tokens is None else f"{tokens:,.0f}"


def _dataset(run: MeasuredRun) -> str:
    return dataset_label(run.scored)


def has_means(data: ReportData) -> bool:
    """Return whether a run has a mean over all tasks of its dataset."""
    return any(mean is not None for mean in data.comparisons.overall)


def _summary(data: ReportData) -> TableContent | None:
    if not has_means(data):
        return None
    groups = [RowGroup(data.heading, summary_rows(data))]
    if published := published_summary_rows(data):
        groups.append(RowGroup(PUBLISHED_HEADING, published))
    return TableContent(
        SUMMARY_HEADER,
        groups,
        text_columns=2,
        csv=(SUMMARY_CSV_HEADER, summary_csv_rows(data)),
        notes=[*not_compared_notes(data), *published_summary_notes(data)],
    )


def published_summary_notes(data: ReportData) -> list[str]:
    """Return the notes about the published rows; none without them."""
    if not published_ranking(data):
        return []
    notes = [f"Below, in grey and without ranks: {PUBLISHED_HEADING}."]
    if any(set(run.scored.dataset.tasks) != set(data.tasks) for run in data.runs):
        notes.append(
            f"Published means are over {len(data.tasks)} tasks, those of a run over the tasks of "
            "its dataset."
        )
    return [*notes, data.published_note] if data.published_note else notes


SUMMARY = TableSpec("summary", "Summary", SUMMARY_CAPTION, _summary, on_page=False)
