"""Answers with a known origin, as controls: float64 arithmetic, exact arithmetic, and mixtures."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS
from numbench.forensics.agreement import FLOAT64_DIGITS, round_to
from numbench.forensics.answers import AnswersByTask, NumericAnswer
from numbench.forensics.computations import FLOAT64, Question


def float64_answers(questions: Iterable[Question]) -> dict[str, list[NumericAnswer]]:
    """Return the answers of `baseline/float64`: what a program prints."""
    return _by_task(
        NumericAnswer(question, question.alternatives[FLOAT64][0])
        for question in questions
        if FLOAT64 in question.alternatives
    )


def exact_answers(
    questions: Iterable[Question], digits: int = SIGNIFICANT_DIGITS
) -> dict[str, list[NumericAnswer]]:
    """Return the exact values, rounded to so many digits."""
    return _by_task(
        NumericAnswer(question, round_to(question.truth, digits)) for question in questions
    )


def plant_float64(
    answers: AnswersByTask, share: float, seed: str, digits: int = FLOAT64_DIGITS
) -> dict[str, list[NumericAnswer]]:
    """Replace a random share of a run's answers by float64 results, rounded to so many digits."""
    random = Random(seed)

    def planted(answer: NumericAnswer) -> NumericAnswer:
        values = answer.question.alternatives.get(FLOAT64)
        if random.random() >= share or not values:
            return answer
        return answer._replace(number=round_to(values[0], digits))

    return {task: list(map(planted, known)) for task, known in answers.items()}


def _by_task(answers: Iterable[NumericAnswer]) -> dict[str, list[NumericAnswer]]:
    tasks: dict[str, list[NumericAnswer]] = {}
    for answer in answers:
        tasks.setdefault(answer.question.item.task, []).append(answer)
    return tasks
