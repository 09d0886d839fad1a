"""Judging answers while a run goes on."""

from __future__ import annotations

from bench.records import Completion, Item
from bench.scoring.exact import score_exact
from bench.scoring.run import NOT_ANSWERED


def judge(item: Item, completion: Completion) -> bool | None:
    """Whether the answer matches under the `exact` protocol; None for a failed request.

    Never raises, whatever the text.
    """
    score = score_exact(item, completion)
    return None if score.status in NOT_ANSWERED else score.exact_match
