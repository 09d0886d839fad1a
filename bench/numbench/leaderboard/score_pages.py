"""Tables of the leaderboard: the ranking, one table per task, and one per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from numbench.reporting.comparison_tables import format_rank_set
from numbench.reporting.entries import MeasuredRun
from numbench.reporting.html_tables import (
    HtmlCell,
    HtmlColumn,
    HtmlRow,
    HtmlTable,
    html_summary_table,
    published_source,
)
from numbench.reporting.report_data import ReportData
from numbench.reporting.summary_table import SUMMARY, ranked_runs
from numbench.reporting.table_model import (
    EXACT_MATCH,
    LOG_SMAPE,
    TOKENS,
    Entry,
    ScoreTableSpec,
    format_bounds,
    format_value,
)
from numbench.reporting.table_registry import build_table
from numbench.scoring.completeness import completeness
from numbench.scoring.taxonomy import CATEGORIES, UNANSWERED_STATUSES, count_categories
from numbench.tasks import TASKS

_SCORES = (LOG_SMAPE, EXACT_MATCH, TOKENS)
_BOUNDS = "Small type: 95 % bounds."
_SCORE_COLUMNS = ("Score", "Exact match", "Tokens", "Ranks", "Answered")


def ranking(data: ReportData, pages: Sequence[str]) -> HtmlTable | None:
    """Return the ranked table with links to the pages of the runs; None without a mean."""
    built = build_table(SUMMARY, data)
    if built is None:
        return None
    table = html_summary_table(built, data)
    rows = []
    for row in table.rows:
        assert row.run is not None
        name = row.cells[0]._replace(link=f"models/{pages[row.run]}.html")
        rows.append(row._replace(cells=[name, *row.cells[1:]]))
    return table._replace(title="Ranking", rows=rows)


def task_overview(data: ReportData, pages: Sequence[str]) -> HtmlTable:
    """Return the score of every run on every task, with links to both."""
    spec = LOG_SMAPE.with_tasks(data.tasks)
    shown = [(name, task) for name, task in spec.columns if task in data.tasks]
    columns = [HtmlColumn("Model", False)]
    columns += [HtmlColumn(name, True, task, f"tasks/{task}.html") for name, task in shown]
    rows = []
    for index in ranked_runs(data):
        run = data.runs[index]
        name = _run_cell(run, f"models/{pages[index]}.html")
        cells = [_score_cell(spec, run.entry, task) for _, task in shown]
        rows.append(HtmlRow(run.entry.model, [name, *cells], index))
    for entry in _published(data):
        cells = [_score_cell(spec, entry, task) for _, task in shown]
        rows.append(
            HtmlRow(entry.model, [_published_cell(data, entry), *cells], None, published=True)
        )
    caption = f"{LOG_SMAPE.caption} {_BOUNDS} {data.published_note}".rstrip()
    return HtmlTable("tasks", "Scores by task", caption, columns, rows)


def task_table(data: ReportData, task: str, pages: Sequence[str]) -> HtmlTable:
    """Return the runs on one task, highest score first, then the published rows without ranks."""
    order = sorted(
        (index for index, run in enumerate(data.runs) if task in run.cells),
        key=lambda index: -_value(data.runs[index].entry, task),
    )
    rows = []
    for index in order:
        run = data.runs[index]
        name = _run_cell(run, f"../models/{pages[index]}.html")
        rows.append(HtmlRow(run.entry.model, [name, *_task_cells(data, index, task)], index))
    published = [entry for entry in _published(data) if task in entry.estimates(LOG_SMAPE)]
    for entry in sorted(published, key=lambda entry: -_value(entry, task)):
        scores = [_score_cell(spec, entry, task) for spec in _SCORES]
        cells = [_published_cell(data, entry), *scores, HtmlCell(""), HtmlCell("")]
        rows.append(HtmlRow(entry.model, cells, None, published=True))
    unit = "log-sMAPE" if TASKS[task].metric == "log_smape" else "exact match"
    caption = (
        f"Score: {unit} in percent; possible ranks (95 % confidence for all runs "
        f"together); tokens: generated per answer. {_BOUNDS} {data.published_note}"
    ).rstrip()
    return HtmlTable(f"task-{task}", "Ranking", caption, _columns("Model"), rows)


def incomplete_table(runs: Sequence[MeasuredRun], pages: Mapping[Path, str]) -> HtmlTable:
    """Return the runs that do not answer their whole dataset: without ranks, most answers first."""
    columns = [HtmlColumn("Model", False), HtmlColumn("Answered", True)]
    rows = []
    for run in sorted(runs, key=lambda run: -completeness(run.scored).answered):
        known = completeness(run.scored)
        name = _run_cell(run, f"models/{pages[run.scored.path]}.html")
        rows.append(HtmlRow(run.entry.model, [name, HtmlCell(str(known), known.answered)], None))
    caption = (
        "These runs lack more than 1 % of the answers to a task. They have no rank, and are in no "
        "comparison and no figure."
    )
    return HtmlTable("incomplete", "Incomplete runs", caption, columns, rows)


def run_table(
    data: ReportData, run: MeasuredRun, is_ranked: bool, task_pages: Sequence[str]
) -> HtmlTable:
    """Return the scores of one run, one row per task; an incomplete run has no ranks.

    task_pages: the tasks that have a page.
    """
    index = data.runs.index(run)
    rows = []
    for task in run.cells:
        link = f"../tasks/{task}.html" if task in task_pages else ""
        name = HtmlCell(TASKS[task].display, link=link)
        cells = _task_cells(data, index, task)
        if not is_ranked:
            cells[_SCORE_COLUMNS.index("Ranks")] = HtmlCell("–")
        rows.append(HtmlRow("", [name, *cells], index))
    caption = f"Score: log-sMAPE; MinMax, Interval and Sorting: exact match; percent. {_BOUNDS}"
    return HtmlTable("scores", "Scores", caption, _columns("Task"), rows)


def error_table(run: MeasuredRun) -> HtmlTable:
    """Return how many samples of each task are in each category that occurs."""
    counts = {
        task: count_categories(row.score for row in rows) for task, rows in run.scored.rows.items()
    }
    shown = [kind for kind in CATEGORIES if any(count[kind.name] for count in counts.values())]
    columns = [HtmlColumn("Kind", False)]
    columns += [HtmlColumn(TASKS[task].display, True) for task in counts]
    rows = [
        HtmlRow(
            "",
            [HtmlCell(kind.display), *(_count_cell(count[kind.name]) for count in counts.values())],
            None,
        )
        for kind in shown
    ]
    caption = "Number of samples per kind of error (numbench show RUN --kind KIND lists them)."
    return HtmlTable("errors", "Errors by kind", caption, columns, rows)


def definitions(table: HtmlTable) -> Mapping[str, str]:
    """Return the definition of each category in a table of errors."""
    known = {kind.display: kind.definition for kind in CATEGORIES}
    return {row.cells[0].text: known[row.cells[0].text] for row in table.rows}


def _columns(first: str) -> list[HtmlColumn]:
    return [HtmlColumn(first, False), *(HtmlColumn(name, True) for name in _SCORE_COLUMNS)]


def _published(data: ReportData) -> list[Entry]:
    return [entry for entry in data.all_entries if entry.published]


def _run_cell(run: MeasuredRun, link: str) -> HtmlCell:
    level = f"{run.entry.reasoning}, {run.scored.info.source}"
    return HtmlCell(run.entry.name, bounds=level, link=link)


def _published_cell(data: ReportData, entry: Entry) -> HtmlCell:
    return HtmlCell(entry.name, bounds=f"{entry.reasoning}, {published_source(data)}")


def _value(entry: Entry, task: str) -> float:
    estimate = entry.estimates(LOG_SMAPE).get(task)
    return float("-inf") if estimate is None else estimate.value


def _score_cell(spec: ScoreTableSpec, entry: Entry, task: str) -> HtmlCell:
    estimate = entry.estimates(spec).get(task)
    if estimate is None:
        return HtmlCell("")
    text = format_value(estimate.value, spec.decimals)
    return HtmlCell(text, estimate.value, format_bounds(spec, estimate))


def _count_cell(count: int) -> HtmlCell:
    return HtmlCell(f"{count:,}" if count else "", count)


def _task_cells(data: ReportData, index: int, task: str) -> list[HtmlCell]:
    run = data.runs[index]
    statuses = run.cells[task].statuses
    answered = sum(statuses.values())
    answered -= sum(statuses.get(status, 0) for status in UNANSWERED_STATUSES)
    total = len(run.scored.dataset.by_task[task]) * run.scored.info.samples
    return [
        *(_score_cell(spec, run.entry, task) for spec in _SCORES),
        HtmlCell(format_rank_set(data.comparisons.rank_sets[index].get(task))),
        HtmlCell(f"{answered:,} of {total:,}"),
    ]
