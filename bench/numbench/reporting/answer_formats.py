"""Format compliance and numeracy as two numbers: exact match as read strictly and leniently."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

from numbench.scoring import score_lenient
from numbench.scoring.scored_run import (
    ScoredItem,
    ScoredRun,
    counted_rows,
    item_groups,
    item_means,
)


class FormatScores(NamedTuple):
    """Exact match of one run on one task under the protocols `exact` and `lenient`, 0 … 100.

    only_lenient: answers that only `lenient` reads.
    """

    exact: float
    lenient: float
    only_lenient: int


def format_scores(run: ScoredRun, task: str) -> FormatScores | None:
    """Return the exact match under both protocols; None under `paper` and without counted items."""
    rows = counted_rows(run, task)
    if run.protocol == "paper" or not rows:
        return None
    groups, only_lenient = item_groups(rows), 0

    def is_right_leniently(row: ScoredItem) -> bool:
        nonlocal only_lenient
        if _is_read_by_exact(row):
            return row.score.exact_match
        score = score_lenient(row.item, row.response)
        only_lenient += score.status == "ok"
        return score.exact_match

    exact = item_means(groups, lambda row: row.score.exact_match and _is_read_by_exact(row))
    lenient = item_means(groups, is_right_leniently)
    return FormatScores(100 * fmean(exact), 100 * fmean(lenient), only_lenient)


def _is_read_by_exact(row: ScoredItem) -> bool:
    return row.score.rule not in (None, "lenient")
