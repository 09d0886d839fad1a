"""How answers are judged: pure functions from items and responses to scores."""

from bench.scoring.exact import score_exact
from bench.scoring.live import judge
from bench.scoring.paper import score_paper
from bench.scoring.run import (
    Cell,
    Row,
    ScoredRun,
    headline,
    score_run,
    signature,
    summarize,
)
from bench.scoring.taxonomy import CATEGORIES, Category, outcome, outcomes

__all__ = [
    "CATEGORIES",
    "Category",
    "Cell",
    "Row",
    "ScoredRun",
    "headline",
    "judge",
    "outcome",
    "outcomes",
    "score_exact",
    "score_paper",
    "score_run",
    "signature",
    "summarize",
]
