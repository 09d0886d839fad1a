"""Answers of a simulated model: correct ones, shortened ones, and errors of every size."""

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from random import Random

from numbench.dataset.store import open_dataset
from numbench.forensics.agreement import round_to
from numbench.forensics.answers import NumericAnswer
from numbench.forensics.computations import Question

TASKS = ("addition", "multiplication", "mean", "std")
PER_TASK = 150


@cache
def questions() -> tuple[Question, ...]:
    """Return questions of the released dataset, as many of each task."""
    dataset = open_dataset("v1")
    return tuple(Question(item) for task in TASKS for item in dataset.by_task[task][:PER_TASK])


def unrelated_answers(random: Random) -> dict[str, list[NumericAnswer]]:
    """Return answers of a model that performs no other computation.

    Its errors do not depend on the alternatives: exact values, values with a relative error
    of any size, values that are off by a few units of the last digit, and unrelated numbers;
    with 4 to 17 digits.
    """
    return _by_task([_answer(question, random) for question in questions()])


def with_planted(
    answers: dict[str, list[NumericAnswer]],
    task: str,
    alternative: str,
    share: float,
    random: Random,
) -> dict[str, list[NumericAnswer]]:
    """Replace a share of the answers to a task by an alternative."""

    def planted(answer: NumericAnswer) -> NumericAnswer:
        values = answer.question.alternatives.get(alternative)
        if not values or random.random() >= share:
            return answer
        return answer._replace(number=round_to(values[0], 15))

    return {name: list(map(planted, a)) if name == task else a for name, a in answers.items()}


def _answer(question: Question, random: Random) -> NumericAnswer:
    truth = question.truth
    digits = random.choice((4, 6, 8, 10, 12, 14, 15, 15, 15, 16, 17))
    kind = random.random()
    number = round_to(truth, digits)
    if kind < 0.3:
        error = Decimal(random.uniform(-1, 1)) * Decimal(10) ** -random.randint(1, 15)
        number = round_to(truth * (1 + error), digits)
    elif kind < 0.6:
        units = random.choice((-2, -1, 1, 2, 10))
        number += units * Decimal(1).scaleb(truth.adjusted() - digits + 1)
    elif kind < 0.65:
        number = round_to(Decimal(random.uniform(-1, 1)) * truth, digits)
    return NumericAnswer(question, number)


def _by_task(answers: Sequence[NumericAnswer]) -> dict[str, list[NumericAnswer]]:
    tasks: dict[str, list[NumericAnswer]] = {}
    for answer in answers:
        tasks.setdefault(answer.question.item.task, []).append(answer)
    return tasks
