"""Scoring: pure functions from items and responses to scores."""

# ruff: noqa: I001 - a module is named once
from numbench.scoring.exact_protocol import (
    is_correct as is_correct,
    score_exact as score_exact,
    score_lenient as score_lenient,
)
from numbench.scoring.paper_protocol import score_paper as score_paper
from numbench.scoring.scored_rows import ScoredItem as ScoredItem, ScoredRows as ScoredRows
from numbench.scoring.scored_run import (
    ScoredRun as ScoredRun,
    TaskSummary as TaskSummary,
    has_requested_format as has_requested_format,
    headline_score as headline_score,
    score_dataset_run as score_dataset_run,
    score_run as score_run,
    signature as signature,
    summarize as summarize,
)
from numbench.scoring.error_kinds import (
    CATEGORIES as CATEGORIES,
    Category as Category,
    categorize as categorize,
)
