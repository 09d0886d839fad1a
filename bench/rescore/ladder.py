"""A score taken apart: from the study's own scoring to exact truth, one repair at a time.

A ladder has five rungs, each a mean over the items of a task: the study's scoring as it was, then
with one more thing repaired on each rung. What a repair changes is the difference between two
rungs, so that the changes add up to the whole.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from decimal import Decimal
from statistics import fmean
from typing import NamedTuple

import msgspec

from bench.records import Response, Score
from bench.rescore.labels import wrong_label
from bench.scoring import (
    Cell,
    Row,
    ScoredRun,
    headline,
    score_exact,
    score_paper,
    summarize,
)
from bench.scoring.paper import ITEMS
from bench.tasks import TASKS

_PLACES = Decimal("0.0001")
_OWN_LABEL = "study_label"


class Repair(NamedTuple):
    """One repair: its name, and what was wrong."""

    name: str
    fault: str


REPAIRS = (
    Repair("labels", "wrong labels"),
    Repair("comparing", "digits cut, not rounded; 5.0 ≠ 5"),
    Repair("parsing", "answers misread"),
    Repair("counting", "missing items counted"),
)
"""In the order in which they are made."""


class Ladder(NamedTuple):
    """One score of a run on a task; `rungs` in percent, to four decimals.

    metric: `log_smape` or `exact_match`. rungs: the study's own scoring, then after each of
    `REPAIRS`; the last is the score of the `exact` protocol. n: items behind the last rung.
    """

    task: str
    metric: str
    rungs: tuple[Decimal, ...]
    n: int

    @property
    def published(self) -> Decimal:
        """The score by the study's own scoring."""
        return self.rungs[0]

    @property
    def exact(self) -> Decimal:
        """The score under exact truth."""
        return self.rungs[-1]

    @property
    def steps(self) -> tuple[Decimal, ...]:
        """What each repair changes, in points; the sum is the whole change, exactly."""
        return tuple(
            after - before for before, after in zip(self.rungs, self.rungs[1:], strict=False)
        )


def ladders(paper: ScoredRun, exact: ScoredRun, wrong: Collection[str]) -> list[Ladder]:
    """Every score of one run, scored under both protocols; none where nothing counts.

    wrong: the items whose published label is wrong.
    """
    before, after = summarize(paper), summarize(exact)
    found = []
    for task, rows in paper.rows.items():
        counted = rows[:ITEMS]
        columns = (
            [_right_label(row, wrong) for row in counted],
            [_by_value(row) for row in counted],
            [row.score for row in exact.rows[task][:ITEMS]],
        )
        for metric in _metrics(task):
            first, last = _value(before[task], metric), _value(after[task], metric)
            if first is None or last is None:
                continue
            means = (first, *(_mean(task, metric, scores) for scores in columns), last)
            rungs = tuple(Decimal(mean).quantize(_PLACES) for mean in means)
            found.append(Ladder(task, metric, rungs, after[task].counted))
    return found


def _metrics(task: str) -> tuple[str, ...]:
    measured = TASKS[task].metric == "log_smape"
    return ("log_smape", "exact_match") if measured else ("exact_match",)


def _value(cell: Cell, metric: str) -> float | None:
    return cell.exact_match if metric == "exact_match" else cell.score


def _right_label(row: Row, wrong: Collection[str]) -> Score:
    """The study's score; against exact truth where the label that it took is wrong."""
    item, response, as_was = row
    if response is None:
        return as_was
    own = response.extra.get(_OWN_LABEL)
    at_fault = wrong_label(item, own) is not None if isinstance(own, str) else item.id in wrong
    if not at_fault:
        return as_was
    return score_paper(item, msgspec.structs.replace(response, extra={}))


def _by_value(row: Row) -> Score:
    """The answer that the study read, judged as the `exact` protocol judges one."""
    read = row.score.parsed
    if read is None:
        return score_exact(row.item, None)
    text = json.dumps({"answer": read})
    return score_exact(row.item, Response(item_id=row.item.id, text=text))


def _mean(task: str, metric: str, scores: Sequence[Score]) -> float:
    if metric == "exact_match":
        return 100 * fmean(score.exact_match for score in scores)
    return 100 * fmean(headline(task, score) for score in scores)
