"""Wrong answers to MinMax, Interval and Sorting that another comparison of the numbers gives.

An answer is described in one of two ways, which also say how often it is right by chance: by the
positions of its elements in the question, or by their ranks among the sorted elements. The other
wrong answers of the task to questions with as many elements are transferred to this question by
their positions; for a computation that is itself a matter of position, such as copying the list
as it is printed, by their ranks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from numbench.forensics.answers import are_numbers
from numbench.forensics.explanations import (
    AlternativeCount,
    MatchingChoice,
    WrongChoices,
    expected_matches,
    poisson_tail,
)
from numbench.records import Answer, Item
from numbench.scoring import ScoredItem, ScoredRun
from numbench.tasks import PAPER_TASKS
from numbench.tasks.base import LETTERS

CHOICE_TASKS = tuple(name for name, task in PAPER_TASKS.items() if task.metric == "exact_match")

Choice = tuple[int, ...]
"""Indices of the elements of an answer among those of the question; for Interval one letter."""

Key = Callable[[str], object]


class ChoiceAnswer(NamedTuple):
    """A wrong answer, as text.

    positions, ranks: None if it is not made of elements of the question.
    """

    item: Item
    text: str
    positions: Choice | None
    ranks: Choice | None


class ChoiceAlternative(NamedTuple):
    """Another way to choose. key: by which it compares. by_rank: how chance transfers answers."""

    name: str
    display: str
    choose: Callable[[Item], Choice | None]
    by_rank: bool = False


def _value(text: str) -> Decimal:
    return Decimal(text)


def _magnitude(text: str) -> Decimal:
    return abs(Decimal(text))


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
    return None if item.operator == "interval" else _choose(item, _value, opposite=True)


def _as_printed(item: Item) -> Choice | None:
    if item.operator == "interval":
        return None
    count = len(item.operands) if item.operator in ("ascending", "descending") else 1
    return tuple(range(count))


CHOICES = (
    ChoiceAlternative("opposite", "the opposite order", _opposite),
    ChoiceAlternative(
        "magnitude", "the order without signs", lambda item: _choose(item, _magnitude)
    ),
    ChoiceAlternative("text", "the alphabetical order", lambda item: _choose(item, str)),
    ChoiceAlternative("version", "the order of versions (9.11 above 9.9)", _by_version),
    ChoiceAlternative(
        "as_printed", "the list or its first element as printed", _as_printed, by_rank=True
    ),
)
"""In the order of all tables."""


def wrong_choices(run: ScoredRun) -> list[WrongChoices]:
    """Compare the wrong answers of the first sample to each comparison task."""
    found = []
    for task in CHOICE_TASKS:
        rows = [row for row in run.rows.get(task, ()) if _is_wrong(row)]
        if rows:
            found.append(_compare(task, [_answer(row) for row in rows]))
    return found


def _is_wrong(row: ScoredItem) -> bool:
    """Return whether a wrong answer to a question of the task's own form is to be compared."""
    item = row.item
    is_wrong = row.score.status == "ok" and not row.score.exact_match and not row.sample
    numbers = (*item.operands, *(() if item.operator == "interval" else _texts(item.answer)))
    return is_wrong and item.operator in PAPER_TASKS[item.task].operators and are_numbers(numbers)


def _texts(answer: Answer | None) -> tuple[str, ...]:
    return (answer,) if isinstance(answer, str) else answer or ()


def _answer(row: ScoredItem) -> ChoiceAnswer:
    item, parsed = row.item, row.score.parsed
    if item.operator == "interval":
        letter = LETTERS.find(str(parsed)) if len(str(parsed)) == 1 else -1
        return ChoiceAnswer(item, str(parsed), (letter,) if letter >= 0 else None, None)
    given = _texts(parsed)
    values = [Decimal(text) for text in item.operands]
    positions: list[int] = []
    text = ", ".join(given)
    if not are_numbers(given):
        return ChoiceAnswer(item, text, None, None)
    for number in map(Decimal, given):
        matching = [i for i, v in enumerate(values) if v == number and i not in positions]
        if not matching:
            return ChoiceAnswer(item, text, None, None)
        positions.append(matching[0])
    return ChoiceAnswer(item, text, tuple(positions), _ranks(item, tuple(positions)))


def _compare(task: str, answers: Sequence[ChoiceAnswer]) -> WrongChoices:
    counts = []
    matched: list[list[str]] = [[] for _ in answers]
    by_position: dict[int, Counter[Choice | None]] = {}
    by_rank: dict[int, Counter[Choice | None]] = {}
    for answer in answers:
        size = len(answer.item.operands)
        by_position.setdefault(size, Counter())[answer.positions] += 1
        by_rank.setdefault(size, Counter())[answer.ranks] += 1
    for alternative in CHOICES:
        matches, trials = 0, []
        for index, answer in enumerate(answers):
            target = alternative.choose(answer.item)
            if target is None or _gives_truth(answer.item, target):
                continue
            is_match = answer.positions == target
            matches += is_match
            if is_match:
                matched[index].append(alternative.name)
            codes = by_rank if alternative.by_rank else by_position
            known = codes[len(answer.item.operands)]
            code = _ranks if alternative.by_rank else _positions
            alike = known[code(answer.item, target)] - is_match
            # Only answers that would be wrong here, too, say how a wrong answer is distributed.
            right = sum(known[code(answer.item, positions)] for positions in _truth(answer.item))
            trials.append((alike, known.total() - right - 1))
        if trials:
            expected = expected_matches(trials)
            p_value = poisson_tail(matches, expected)
            counts.append(
                AlternativeCount(task, alternative.name, len(trials), matches, expected, p_value)
            )
    matching = [
        MatchingChoice(answer.item, answer.text, names)
        for answer, names in zip(answers, matched, strict=True)
        if names
    ]
    return WrongChoices(task, len(answers), counts, matching)


def _ranks(item: Item, positions: Choice) -> Choice:
    """Return the ranks of elements among all elements of a question."""
    values = [Decimal(text) for text in item.operands]
    order = sorted(range(len(values)), key=values.__getitem__)
    return tuple(order.index(position) for position in positions)


def _positions(_item: Item, positions: Choice) -> Choice:
    return positions


def _truth(item: Item) -> list[Choice]:
    """Return the positions of the right answer; of equal elements each, for MinMax."""
    if item.operator == "interval":
        return [(LETTERS.find(str(item.answer)),)]
    if isinstance(item.answer, str):
        answer = Decimal(item.answer)
        return [(i,) for i, text in enumerate(item.operands) if Decimal(text) == answer]
    right = _choose(item, _value)
    return [right] if right else []


def _gives_truth(item: Item, target: Choice) -> bool:
    """Return whether the computation gives the right answer, equal elements included."""
    if item.operator == "interval":
        return LETTERS[target[0] : target[0] + 1] == item.answer
    answer = _texts(item.answer)
    return [Decimal(item.operands[i]) for i in target] == [Decimal(text) for text in answer]
