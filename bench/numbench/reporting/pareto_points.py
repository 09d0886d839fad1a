"""Points of the Pareto figures: mean score and mean tokens or dollars over all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from numbench.reporting.entries import token_stratum
from numbench.reporting.panels import run_label
from numbench.reporting.pareto import ParetoPoint
from numbench.reporting.report_data import ReportData
from numbench.reporting.sampling_design import run_stratum, sample_mean
from numbench.reporting.table_model import LOG_SMAPE, TOKENS, Entry, Estimate
from numbench.scoring import ScoredItem, ScoredRun
from numbench.scoring.scored_run import counted_rows
from numbench.stats.design import Stratum
from numbench.stats.intervals import Interval, bootstrap_mean_of_means, bootstrap_means

COST_PER_ITEMS = 1_000
_MAX_UNKNOWN_COST_SHARE = 0.01


def token_points(data: ReportData) -> list[ParetoPoint]:
    """Return mean score and mean generated tokens per answer of each entry that has all tasks."""
    points = []
    for run, score in zip(data.runs, data.comparisons.overall, strict=True):
        tokens = run.entry.estimates(TOKENS)
        if score is not None and all(task in tokens for task in data.tasks):
            strata = [token_stratum(run.scored, task) for task in data.tasks]
            bounds = [Interval(*tokens[task].bounds_or_value[1:]) for task in data.tasks]
            points.append(_point(run.entry, _mean_over_tasks(strata, bounds), score))
    return points + [_published_point(entry, data.tasks) for entry in _complete_published(data)]


def cost_points(data: ReportData) -> list[ParetoPoint]:
    """Return mean score and US dollars per 1,000 items of each run with all tasks and costs.

    At most one response in a hundred of a task may lack its cost; the mean is over the others.
    """
    known = [
        (run, score)
        for run, score in zip(data.runs, data.comparisons.overall, strict=True)
        if score is not None and all(_has_costs(run.scored, task) for task in data.tasks)
    ]
    strata = [
        [run_stratum(run.scored, task, sample_mean(_cost_per_items)) for task in data.tasks]
        for run, _ in known
    ]
    # All at once, because columns of the same length share the bootstrap draws.
    bounds = iter(bootstrap_means([stratum for of_run in strata for stratum in of_run]))
    return [
        _point(run.entry, _mean_over_tasks(of_run, list(islice(bounds, len(of_run)))), score)
        for (run, score), of_run in zip(known, strata, strict=True)
    ]


def mean_cost(run: ScoredRun, tasks: Sequence[str]) -> float | None:
    """Return the US dollars per 1,000 items, mean over the tasks; None as in `cost_points`."""
    if not all(_has_costs(run, task) for task in tasks):
        return None
    strata = [run_stratum(run, task, sample_mean(_cost_per_items)) for task in tasks]
    return sum(float(stratum.means[0]) for stratum in strata) / len(strata)


def _point(entry: Entry, price: Estimate, score: Estimate) -> ParetoPoint:
    return ParetoPoint(run_label(entry.name, entry.reasoning), price, score, entry.published)


def _mean_over_tasks(strata: Sequence[Stratum], intervals: Sequence[Interval]) -> Estimate:
    """Return the unweighted mean of the tasks' means, given their intervals."""
    mean = sum(float(stratum.means[0]) for stratum in strata) / len(strata)
    return Estimate(mean, *bootstrap_mean_of_means(strata, intervals))


def _complete_published(data: ReportData) -> list[Entry]:
    """Return the published entries that have scores and tokens of all tasks."""
    return [
        entry
        for entry in data.published
        if all(
            task in entry.estimates(table) for table in (LOG_SMAPE, TOKENS) for task in data.tasks
        )
    ]


def _published_point(entry: Entry, tasks: Sequence[str]) -> ParetoPoint:
    price, score = (
        Estimate(sum(entry.estimates(table)[task].value for task in tasks) / len(tasks))
        for table in (TOKENS, LOG_SMAPE)
    )
    return _point(entry, price, score)


def _has_costs(run: ScoredRun, task: str) -> bool:
    """Return whether the costs of a task are known."""
    rows = counted_rows(run, task) if task in run.rows else []
    known = sum(_cost_per_items(row) is not None for row in rows)
    return known > 0 and known >= (1 - _MAX_UNKNOWN_COST_SHARE) * len(rows)


def _cost_per_items(row: ScoredItem) -> float | None:
    """Return the US dollars of 1,000 responses like this, None if there is none or no cost."""
    if row.response is None or row.response.cost is None:
        return None
    return COST_PER_ITEMS * row.response.cost
