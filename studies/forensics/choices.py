"""Wrong answers to MinMax, Interval and Sorting that another comparison of the numbers gives.

An answer is described in one of two ways, which also say how often it is right by chance: by the
positions of its elements in the question, or by their ranks among the sorted elements. The other
wrong answers of the task to questions with as many elements are transferred to this question by
their positions; for a computation that is itself a matter of position, such as copying the list
as it is printed, by their ranks.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from numbench.forensics.answers import are_numbers
from numbench.forensics.chance import WrongAnswers, count_matches
from numbench.records import Answer, Item
from numbench.scoring import ScoredItem, ScoredRun
from numbench.tasks import PAPER_TASKS
from numbench.tasks.base import LETTERS

CHOICE_TASKS = tuple(name for name, task in PAPER_TASKS.items() if task.metric == "exact_match")

Choice = tuple[int, ...]
"""Indices of the elements of an answer among those of the question; for Interval one letter."""

Key = Callable[[str], object]


class ChoiceAlternative(NamedTuple):
    """Another way to choose. key: by which it compares. by_rank: how chance transfers answers."""

    name: str
    display: str
    choose: Callable[[Item], Choice | None]
    by_rank: bool = False


def _version(text: str) -> tuple[int, int]:
    """Return the key by which 9.11 is greater than 9.9, as for versions."""
    whole, _, fraction = text.lstrip("-").partition(".")
    sign = -1 if text.startswith("-") else 1
    return sign * int(whole or 0), sign * int(fraction or 0)


def _choose(item: Item, key: Key, opposite: bool = False) -> Choice | None:
    """Return the answer by another key; None if it leaves the order of elements open."""
    elements = item.operands
    keys = [key(text) for text in elements]
    if item.operator == "interval":
        below = sum(bound <= keys[0] for bound in keys[1:])  # type: ignore[operator]
        return (below,)
    order = sorted(range(len(elements)), key=lambda i: keys[i])  # type: ignore[arg-type,return-value]
    if (item.operator in ("maximum", "descending")) != opposite:
        order.reverse()
    return tuple(order) if item.operator in ("ascending", "descending") else (order[0],)


def _by_version(item: Item) -> Choice | None:
    is_plain = all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) for text in item.operands)
    return _choose(item, _version) if is_plain else None


def _opposite(item: Item) -> Choice | None:
    return None if item.operator == "interval" else _choose(item, Decimal, opposite=True)


def _as_printed(item: Item) -> Choice | None:
    if item.operator == "interval":
        return None
    count = len(item.operands) if item.operator in ("ascending", "descending") else 1
    return tuple(range(count))


CHOICES = (
    ChoiceAlternative("opposite", "the opposite order", _opposite),
    ChoiceAlternative(
        "magnitude",
        "the order without signs",
        lambda item: _choose(item, lambda text: abs(Decimal(text))),
    ),
    ChoiceAlternative("text", "the alphabetical order", lambda item: _choose(item, str)),
    ChoiceAlternative("version", "the order of versions (9.11 above 9.9)", _by_version),
    ChoiceAlternative(
        "as_printed", "the list or its first element as printed", _as_printed, by_rank=True
    ),
)
"""In the order of all tables."""


def wrong_choices(run: ScoredRun) -> list[WrongAnswers]:
    """Compare the wrong answers of the first sample to each comparison task."""
    known = {task: list(filter(_is_wrong, run.rows.get(task, ()))) for task in CHOICE_TASKS}
    return [_compare(task, rows) for task, rows in known.items() if rows]


def _is_wrong(row: ScoredItem) -> bool:
    """Return whether a wrong answer to a question of the task's own form is to be compared."""
    item = row.item
    is_wrong = row.score.status == "ok" and not row.score.exact_match and not row.sample
    numbers = (*item.operands, *(() if item.operator == "interval" else _texts(item.answer)))
    return is_wrong and item.operator in PAPER_TASKS[item.task].operators and are_numbers(numbers)


def _texts(answer: Answer | None) -> tuple[str, ...]:
    return (answer,) if isinstance(answer, str) else answer or ()


def _given(row: ScoredItem) -> Choice | None:
    """Return a wrong answer; None if it is not made of elements of the question."""
    if row.item.operator == "interval":
        text = str(row.score.parsed)
        letter = LETTERS.find(text) if len(text) == 1 else -1
        return (letter,) if letter >= 0 else None
    given = _texts(row.score.parsed)
    if not are_numbers(given):
        return None
    left = dict(enumerate(map(Decimal, row.item.operands)))
    positions = []
    for number in map(Decimal, given):
        position = next((index for index, value in left.items() if value == number), None)
        if position is None:
            return None
        positions.append(position)
        del left[position]
    return tuple(positions)


def _compare(task: str, rows: Sequence[ScoredItem]) -> WrongAnswers:
    counts = []
    given = [(row.item, _given(row)) for row in rows]
    names: list[list[str]] = [[] for _ in given]
    for alternative in CHOICES:
        targets = [alternative.choose(item) for item, _ in given]
        if not any(targets):
            continue

        def code(item: Item, choice: Choice, by_rank: bool = alternative.by_rank) -> Choice:
            return _ranks(item, choice) if by_rank else choice

        by_size: defaultdict[int, Counter[Choice | None]] = defaultdict(Counter)
        for item, choice in given:
            by_size[len(item.operands)][choice and code(item, choice)] += 1
        trials = []
        for (item, choice), target, of_answer in zip(given, targets, names, strict=True):
            if target is None or _gives_truth(item, target):
                continue
            is_match = choice == target
            if is_match:
                of_answer.append(alternative.name)
            known = by_size[len(item.operands)]
            # Only answers that would be wrong here, too, say how a wrong answer is distributed.
            right = sum(known[code(item, positions)] for positions in _truth(item))
            trials.append((known[code(item, target)] - is_match, known.total() - right - 1))
        if trials:
            matches = sum(alternative.name in of_answer for of_answer in names)
            counts.append(count_matches(task, alternative.name, matches, trials))
    return WrongAnswers(task, counts, names)


def _ranks(item: Item, positions: Choice) -> Choice:
    """Return the ranks of elements among all elements of a question."""
    values = [Decimal(text) for text in item.operands]
    order = sorted(range(len(values)), key=values.__getitem__)
    return tuple(order.index(position) for position in positions)


def _truth(item: Item) -> list[Choice]:
    """Return the positions of the right answer; of equal elements each, for MinMax."""
    if item.operator == "interval":
        return [(LETTERS.find(str(item.answer)),)]
    if isinstance(item.answer, str):
        answer = Decimal(item.answer)
        return [(i,) for i, text in enumerate(item.operands) if Decimal(text) == answer]
    right = _choose(item, Decimal)
    return [right] if right else []


def _gives_truth(item: Item, target: Choice) -> bool:
    """Return whether the computation gives the right answer, equal elements included."""
    if item.operator == "interval":
        return LETTERS[target[0] : target[0] + 1] == item.answer
    answer = _texts(item.answer)
    return [Decimal(item.operands[i]) for i in target] == [Decimal(text) for text in answer]
