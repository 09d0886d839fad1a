"""The probability that an answer agrees with given values by chance, from a run's other answers.

Three ways to agree by chance are counted. An answer may be a number without relation to its
question: each other answer of the task is taken as the answer to this question. It may be the exact
value with an error of a size that the model makes anyway: the error of each other answer, in units
of the 15th digit of its exact value, is added to this question's exact value. Or it may be off by a
few units of the last digit that it gives: the error of each other answer in such units is added to
this question's rounded value.

For the first two, the other answers that take part give as many digits, or, where these are few,
up to as many more as are needed for 20 of them. These are expectations under a random permutation
of the answers, or of their errors, within a task and digit length.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import NamedTuple

from numbench.forensics.agreement import readings, round_to

_ENOUGH_ANSWERS = 20
_EXACT = Context(prec=200, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_ZERO, _FIVE = Decimal(0), Decimal(5)


class GivenAnswer(NamedTuple):
    """A number that a model answered, rounded to the digits that are compared.

    digits: significant digits that it gives. truth: the exact value.
    """

    value: Decimal
    digits: int
    truth: Decimal

    @property
    def agrees_with_truth(self) -> bool:
        """Whether the answer is the exact value to the digits that it gives."""
        return self.value in readings((self.truth,), self.digits)


class Target(NamedTuple):
    """The errors of an answer to a question that counts as agreement.

    units: in units of its last digit. low, high: in units of the last digit of the exact value, the
    errors with which that rounds to it.
    """

    units: Decimal
    low: Decimal
    high: Decimal


Targets = Mapping[Decimal, Target]
"""Answers that count as agreement: value → errors."""


class ChanceMatches(NamedTuple):
    """How many other answers would agree: as they are, by their errors, and by units of the last
    digit. others: the number of other answers for the first two, and of all."""

    by_answer: int
    by_error: int
    by_unit: int
    others: int
    all_others: int


class _SimilarAnswers(NamedTuple):
    """The answers that are compared with those of as many digits.

    values: how often each is given, rounded to these digits. errors: in units of the last digit of
    the exact value, ascending.
    """

    values: Counter[Decimal]
    errors: Sequence[Decimal]
    total: int


class ChanceModel:
    """The answers of one run to the questions of one task."""

    def __init__(self, answers: Sequence[GivenAnswer], limit: int) -> None:
        """Index the answers. limit: the most digits of an answer."""
        self._limit = limit
        by_digits: list[list[GivenAnswer]] = [[] for _ in range(limit + 1)]
        for answer in answers:
            by_digits[answer.digits].append(answer)
        self._similar = [self._index(by_digits, digits) for digits in range(limit + 1)]
        self._units = Counter(
            _in_last_digits(a.value, round_to(a.truth, a.digits), a.digits) for a in answers
        )
        self._total = len(answers)

    def _index(self, by_digits: Sequence[Sequence[GivenAnswer]], digits: int) -> _SimilarAnswers:
        similar: list[GivenAnswer] = []
        for known in by_digits[digits:]:
            similar += known
            if len(similar) > _ENOUGH_ANSWERS:
                break
        values = Counter(round_to(answer.value, digits) for answer in similar)
        errors = (_difference(a.value, *_unit(a.truth, self._limit)) for a in similar if a.truth)
        return _SimilarAnswers(values, sorted(errors), len(similar))

    def matches(self, answer: GivenAnswer, targets: Targets) -> ChanceMatches:
        """Return how many of the other answers would be one of `targets` in place of `answer`.

        targets: by their values, for the digits and the exact value of `answer`, which is one of
        the indexed answers.
        """
        values, errors, total = self._similar[answer.digits]
        own = answer.value in targets
        by_answer, by_error, by_unit = -own, -own, -own
        for value, (units, low, high) in targets.items():
            by_answer += values.get(value, 0)
            by_unit += self._units.get(units, 0)
            if answer.truth:
                start = bisect_left(errors, low)
                if start < len(errors) and errors[start] <= high:
                    by_error += bisect_right(errors, high, start) - start
        return ChanceMatches(by_answer, max(0, by_error), by_unit, total - 1, self._total - 1)


def make_targets(values: Iterable[Decimal], truth: Decimal, digits: int, limit: int) -> Targets:
    """Return answers of so many digits as targets, by their values.

    truth: the exact value. limit: the most digits of an answer.
    """
    rounded = round_to(truth, digits)
    exact, place = _unit(truth, limit)
    # At full precision the units are those of the target: only the error itself fits.
    is_full = digits == limit
    targets = {}
    for value in values:
        center = _difference(value, exact, place)
        if is_full and truth and rounded.adjusted() == truth.adjusted():
            targets[value] = Target(center, center, center)
            continue
        units = _in_last_digits(value, rounded, digits)
        # Half a unit of the last digit.
        size = _ZERO if is_full else _FIVE
        half = _EXACT.scaleb(size, (value or truth).adjusted() - digits - place)
        targets[value] = Target(units, _EXACT.subtract(center, half), _EXACT.add(center, half))
    return targets


def _unit(truth: Decimal, limit: int) -> tuple[Decimal, int]:
    """Return the rounded exact value and the place of its last digit, as a power of ten."""
    return round_to(truth, limit), truth.adjusted() - limit + 1


def _in_last_digits(value: Decimal, rounded: Decimal, digits: int) -> Decimal:
    """Return the error of a value of so many digits in units of the last one."""
    return _difference(value, rounded, (rounded or value).adjusted() - digits + 1)


def _difference(value: Decimal, exact: Decimal, place: int) -> Decimal:
    """Return the difference of two numbers in units of 10^place."""
    return _EXACT.scaleb(_EXACT.subtract(value, exact), -place)
