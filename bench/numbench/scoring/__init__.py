"""Scoring: pure functions from items and responses to scores."""

from numbench.scoring.exact_protocol import is_correct, score_exact, score_lenient
from numbench.scoring.paper_protocol import score_paper
from numbench.scoring.scored_run import (
    ScoredItem,
    ScoredRun,
    TaskSummary,
    has_requested_format,
    headline_percent,
    headline_score,
    score_dataset_run,
    score_run,
    signature,
    summarize,
)
from numbench.scoring.taxonomy import CATEGORIES, Category, categorize, count_categories

__all__ = [
    "CATEGORIES",
    "Category",
    "ScoredItem",
    "ScoredRun",
    "TaskSummary",
    "categorize",
    "count_categories",
    "has_requested_format",
    "headline_percent",
    "headline_score",
    "is_correct",
    "score_dataset_run",
    "score_exact",
    "score_lenient",
    "score_paper",
    "score_run",
    "signature",
    "summarize",
]
