"""Decompose the change of a score from the study's own scoring to exact scoring.

A decomposition has five stages, each a mean over the items of a task: the study's own scoring,
then one more correction per stage. The effect of a correction is the difference between two
stages, so the effects add up to the whole change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from statistics import fmean
from typing import NamedTuple

import msgspec

from numbench.dataset.audit import LabelError, check_label, parse_label
from numbench.dataset.store import Dataset
from numbench.records import Item, Response, Score
from numbench.scoring import (
    ScoredItem,
    ScoredRun,
    TaskSummary,
    headline_score,
    score_exact,
    score_paper,
    summarize,
)
from numbench.scoring.paper_protocol import ITEMS_PER_TASK, STUDY_LABEL_KEY
from numbench.scoring.published_labels import read_published_labels
from numbench.tasks import TASKS

_PRECISION = Decimal("0.0001")


class Correction(NamedTuple):
    """A correction of the study's scoring: its name, and the fault that it corrects."""

    name: str
    fault: str


CORRECTIONS = (
    Correction("labels", "wrong labels"),
    Correction("comparing", "digits truncated; 5.0 ≠ 5"),
    Correction("parsing", "answers misread"),
    Correction("counting", "missing items counted"),
)
"""The corrections in the order in which they are applied."""


class ScoreDecomposition(NamedTuple):
    """One score of a run on a task, decomposed.

    metric: `log_smape` or `exact_match`.
    stages: in percent, to four decimals: the study's own scoring, then the score after each of
        `CORRECTIONS`; the last stage is the score of the `exact` protocol.
    n: number of items of the last stage.
    """

    task: str
    metric: str
    stages: tuple[Decimal, ...]
    n: int

    @property
    def published(self) -> Decimal:
        """Score by the study's own scoring."""
        return self.stages[0]

    @property
    def exact(self) -> Decimal:
        """Score of the `exact` protocol."""
        return self.stages[-1]

    @property
    def changes(self) -> tuple[Decimal, ...]:
        """Effect of each correction in points; they add up to the whole change exactly."""
        return tuple(
            after - before for before, after in zip(self.stages, self.stages[1:], strict=False)
        )


def decompose_scores(
    paper: ScoredRun, exact: ScoredRun, wrong: Collection[str]
) -> list[ScoreDecomposition]:
    """Decompose every score of a run that was scored under both protocols.

    Scores without counted items are left out. wrong: ids of the items with a wrong published
    label.
    """
    before, after = summarize(paper), summarize(exact)
    decompositions = []
    for task, rows in paper.rows.items():
        counted = rows[:ITEMS_PER_TASK]
        columns = (
            [_score_with_correct_label(row, wrong) for row in counted],
            [_score_by_value(row) for row in counted],
            [row.score for row in exact.rows[task][:ITEMS_PER_TASK]],
        )
        for metric in _metrics(task):
            first, last = _value(before[task], metric), _value(after[task], metric)
            if first is None or last is None:
                continue
            means = (first, *(_mean(task, metric, scores) for scores in columns), last)
            stages = tuple(Decimal(mean).quantize(_PRECISION) for mean in means)
            decompositions.append(ScoreDecomposition(task, metric, stages, after[task].counted))
    return decompositions


def _metrics(task: str) -> tuple[str, ...]:
    has_log_smape = TASKS[task].metric == "log_smape"
    return ("log_smape", "exact_match") if has_log_smape else ("exact_match",)


def _value(summary: TaskSummary, metric: str) -> float | None:
    return summary.exact_match if metric == "exact_match" else summary.score


def _score_with_correct_label(row: ScoredItem, wrong: Collection[str]) -> Score:
    """Return the study's score, but against the exact answer if the study's label is wrong."""
    item, response, study_score = row
    if response is None:
        return study_score
    own = response.extra.get(STUDY_LABEL_KEY)
    is_wrong = wrong_label(item, own) is not None if isinstance(own, str) else item.id in wrong
    if not is_wrong:
        return study_score
    return score_paper(item, msgspec.structs.replace(response, extra={}))


def _score_by_value(row: ScoredItem) -> Score:
    """Score the answer that the study parsed as the `exact` protocol scores an answer."""
    answer = row.score.parsed
    if answer is None:
        return score_exact(row.item, None)
    text = json.dumps({"answer": answer})
    return score_exact(row.item, Response(item_id=row.item.id, text=text))


def _mean(task: str, metric: str, scores: Sequence[Score]) -> float:
    if metric == "exact_match":
        return 100 * fmean(score.exact_match for score in scores)
    return 100 * fmean(headline_score(task, score) for score in scores)


class Ceiling(NamedTuple):
    """Score of a perfect oracle by the study's scoring, in percent.

    score: in the task's headline metric.
    """

    score: float
    exact_match: float


class LabelAudit(NamedTuple):
    """The labels of a task: their number, the wrong ones, and the ceiling that they cause."""

    task: str
    n: int
    wrong: tuple[LabelError, ...]
    ceiling: Ceiling

    @property
    def largest_error(self) -> float | None:
        """Largest relative error of a wrong label; None if no error is known."""
        errors = [w.relative_error for w in self.wrong if w.relative_error is not None]
        return max(errors, default=None)


def audit_labels(dataset: Dataset) -> list[LabelAudit]:
    """Audit the published labels of an imported dataset, task by task."""
    labels = read_published_labels(dataset.path)
    labelled = {
        task: [(item, labels[item.id]) for item in items if item.id in labels]
        for task, items in dataset.by_task.items()
    }
    return [_audit_task(task, pairs) for task, pairs in labelled.items() if pairs]


def wrong_label(item: Item, label: str) -> LabelError | None:
    """Return the error of a published label; None if the label is correct."""
    return check_label(parse_label(item.id, "prompt", item.prompt, label))


def _audit_task(task: str, labelled: Sequence[tuple[Item, str]]) -> LabelAudit:
    errors = [error for pair in labelled if (error := wrong_label(*pair)) is not None]
    ceiling = _ceiling(task, labelled[:ITEMS_PER_TASK])
    return LabelAudit(task, len(labelled), tuple(errors), ceiling)


def _ceiling(task: str, labels: Iterable[tuple[Item, str]]) -> Ceiling:
    scores = [score_paper(item, _oracle_response(item), label) for item, label in labels]
    return Ceiling(
        100 * fmean(headline_score(task, score) for score in scores),
        100 * fmean(score.exact_match for score in scores),
    )


def _oracle_response(item: Item) -> Response:
    """Return the exact answer in the requested format."""
    kind = TASKS[item.task].answer_kind
    answer = item.answer if isinstance(item.answer, str) else f"[{', '.join(item.answer)}]"
    value = json.dumps(answer) if kind == "letter" else answer
    return Response(item_id=item.id, text=f'{{"answer": {value}}}')
