"""The numeric answers of a run, with the questions that they are compared on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS
from numbench.dataset.store import read_published_labels
from numbench.forensics.agreement import GivenAnswer, digits_given, round_to
from numbench.forensics.computations import Question
from numbench.scoring import ScoredRows, ScoredRun
from numbench.scoring.scored_rows import Mask
from numbench.tasks import PAPER_TASKS

NUMERIC_TASKS = tuple(name for name, task in PAPER_TASKS.items() if task.metric == "log_smape")
"""The tasks whose answers are compared: Add, Mult, Div, Exp, Mean and Std."""


MAX_ANSWERS = 500
"""Of more answers of a run to a task, so many random ones are compared."""


class NumericAnswer(NamedTuple):
    """A parsed answer. number: as written."""

    question: Question
    number: Decimal

    def given(self, limit: int = SIGNIFICANT_DIGITS) -> GivenAnswer:
        """Return the answer as it is compared at up to `limit` digits."""
        digits = digits_given(self.number, limit)
        return GivenAnswer(round_to(self.number, digits), digits, self.question.truth)


Questions = Mapping[str, Question]
AnswersByTask = Mapping[str, list[NumericAnswer]]


def sample_answers(run: ScoredRun, is_wrong: bool = False) -> ScoredRun:
    """Return a run with at most `MAX_ANSWERS` of the first samples of each task.

    They are drawn at random by the id of their question, so the same ones for every run. is_wrong:
    whether to draw from the incorrect answers only.
    """
    rows = {}
    for task, known in run.rows.items():
        columns = known.columns
        is_chosen = columns["sample"] == 0
        if is_wrong:
            is_chosen &= is_incorrect(known)
        chosen = np.flatnonzero(is_chosen)
        if len(chosen) > MAX_ANSWERS:
            order = np.argsort(columns["id_hash"][chosen], kind="stable")
            chosen = np.sort(chosen[order[:MAX_ANSWERS]])
        rows[task] = known.select(chosen)
    return run._replace(rows=rows)


def is_incorrect(rows: ScoredRows) -> Mask:
    """Return whether an answer was read and is not correct, row by row."""
    return np.asarray(rows.is_read & ~rows.columns["exact_match"])


def read_questions(run: ScoredRun, known: Questions | None = None) -> dict[str, Question]:
    """Return the items of a run whose answers are computed numbers, by item id.

    known: questions of the same dataset, which keep the values that they have computed.
    """
    known = known or {}
    labels = read_published_labels(run.dataset.path)
    items = {row.item.id: row.item for task in NUMERIC_TASKS for row in run.rows.get(task, ())}
    return {
        id_: known.get(id_) or Question(item, Decimal(labels[id_]) if id_ in labels else None)
        for id_, item in items.items()
        if id_ in known or are_numbers((*item.operands, str(item.answer)))
    }


def are_numbers(texts: Iterable[str]) -> bool:
    """Return whether all texts are numbers, as operands in datasets of `numbench generate` are."""
    try:
        return all(Decimal(text).is_finite() for text in texts)
    except InvalidOperation:
        return False


def numeric_answers(run: ScoredRun, questions: Questions) -> dict[str, list[NumericAnswer]]:
    """Return the first sample's answers of a run, by task."""
    answers: dict[str, list[NumericAnswer]] = {}
    for task, rows in run.rows.items():
        known = [row for row in rows if row.item.id in questions and not row.sample]
        if known:
            answers[task] = [
                NumericAnswer(questions[row.item.id], Decimal(row.score.parsed))
                for row in known
                if row.score.status == "ok" and isinstance(row.score.parsed, str)
            ]
    return answers
