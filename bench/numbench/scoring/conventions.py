"""Answers by another convention of a task, such as the sample instead of the population deviation.

A `Task` declares its conventions. An answer by one of them is wrong, with an error kind of its own;
`score_with_conventions` is the score if every convention of the task were accepted.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from numbench.records import ErrorKind, Item, Score
from numbench.scoring.error_kinds import follows_convention
from numbench.scoring.metrics import log_smape, round_significant
from numbench.scoring.notation import read_number
from numbench.tasks import TASKS, Convention


class ConventionScore(NamedTuple):
    """A score with every convention accepted. log_smape: in [0, 1].

    follows: whether the answer is wrong, within 0.1% of the answer by another convention, and
    closer to that than to the truth.
    """

    log_smape: float
    exact_match: bool
    follows: bool


def convention_error(item: Item, answer: Decimal) -> ErrorKind | None:
    """Return the error kind of the convention that a wrong number follows, None if there is none.

    A number follows a convention if it is within 0.1 % of the answer by it, and closer to that
    than to the truth.
    """
    if not TASKS[item.task].conventions:
        return None
    truth = Decimal(str(item.answer))
    for convention, alternative in _alternatives(item.task, item.operator, item.operands):
        if follows_convention(answer, alternative, truth):
            return convention.error_kind
    return None


def score_with_conventions(item: Item, score: Score) -> ConventionScore:
    """Return the best score of the answer among the task's definition and its conventions.

    item: of a task with conventions. score: its score by any protocol but `paper`.
    """
    answer = read_number(score.parsed) if isinstance(score.parsed, str) else None
    best = ConventionScore(score.log_smape or 0.0, score.exact_match, False)
    if answer is None or score.exact_match:
        return best
    rounded = round_significant(answer)
    alternatives = _alternatives(item.task, item.operator, item.operands)
    return ConventionScore(
        max([best.log_smape, *(log_smape(rounded, other) for _, other in alternatives)]),
        any(rounded == other for _, other in alternatives),
        convention_error(item, answer) is not None,
    )


@lru_cache(1 << 14)
def _alternatives(
    task: str, operator: str, operands: tuple[str, ...]
) -> tuple[tuple[Convention, Decimal], ...]:
    """Return the task's conventions with their answers, rounded to 15 digits."""
    alternatives = []
    for convention in TASKS[task].conventions:
        try:
            answer = convention.exact_answer(operator, operands)
        except ValueError:
            continue
        alternatives.append((convention, round_significant(Decimal(answer))))
    return tuple(alternatives)
