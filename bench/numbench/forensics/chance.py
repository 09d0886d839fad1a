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
from collections.abc import Collection, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import NamedTuple

from numbench.forensics.agreement import readings, round_to

_ENOUGH_ANSWERS = 20
_EXACT = Context(prec=200, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


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


class ChanceMatches(NamedTuple):
    """How many other answers would agree: as they are, by their errors, and by units of the last
    digit. others: the number of other answers for the first two, and of all."""

    by_answer: int
    by_error: int
    by_unit: int
    others: int
    all_others: int


class ChanceModel:
    """The answers of one run to the questions of one task."""

    def __init__(self, answers: Sequence[GivenAnswer], limit: int) -> None:
        """Index the answers. limit: the most digits of an answer."""
        self._limit = limit
        self._answers: list[Counter[Decimal]] = [Counter() for _ in range(limit + 1)]
        self._errors: list[list[Decimal]] = [[] for _ in range(limit + 1)]
        by_digits: list[list[GivenAnswer]] = [[] for _ in range(limit + 1)]
        for answer in answers:
            by_digits[answer.digits].append(answer)
        for digits in range(1, limit + 1):
            similar: list[GivenAnswer] = []
            for known in by_digits[digits:]:
                similar += known
                if len(similar) > _ENOUGH_ANSWERS:
                    break
            self._answers[digits].update(round_to(answer.value, digits) for answer in similar)
            errors = map(self._error, similar)
            self._errors[digits] = sorted(error for error in errors if error is not None)
        self._units = Counter(map(_units, answers))

    def matches(self, answer: GivenAnswer, targets: Collection[Decimal]) -> ChanceMatches:
        """Return how many of the other answers would be one of `targets` in place of `answer`.

        targets: the answers with the digits of `answer` that count as agreement. `answer` is one
        of the indexed answers.
        """
        digits = answer.digits
        counter, errors = self._answers[digits], self._errors[digits]
        own = answer.value in targets
        by_answer = sum(counter[target] for target in targets) - own
        by_error = 0
        if answer.truth:
            for target in targets:
                low, high = self._error_range(answer.truth, target, digits)
                by_error += bisect_right(errors, high) - bisect_left(errors, low)
            by_error = max(0, by_error - own)
        by_unit = sum(self._units[_units(answer._replace(value=target))] for target in targets)
        return ChanceMatches(
            by_answer, by_error, by_unit - own, counter.total() - 1, self._units.total() - 1
        )

    def _error(self, answer: GivenAnswer) -> Decimal | None:
        if not answer.truth:
            return None
        difference = _EXACT.subtract(answer.value, round_to(answer.truth, self._limit))
        return _EXACT.scaleb(difference, -self._unit(answer.truth))

    def _error_range(self, truth: Decimal, target: Decimal, digits: int) -> tuple[Decimal, Decimal]:
        """Return the errors with which `truth` rounds to `target`, in units of its last digit."""
        unit = self._unit(truth)
        center = _EXACT.subtract(target, round_to(truth, self._limit))
        position = (target.adjusted() if target else truth.adjusted()) - digits + 1
        # At full precision the units are those of the target: only the error itself fits.
        half = Decimal(5).scaleb(position - 1, _EXACT) if digits < self._limit else Decimal(0)
        return (
            _EXACT.scaleb(_EXACT.subtract(center, half), -unit),
            _EXACT.scaleb(_EXACT.add(center, half), -unit),
        )

    def _unit(self, truth: Decimal) -> int:
        return truth.adjusted() - self._limit + 1


def _units(answer: GivenAnswer) -> Decimal:
    """Return the error of an answer in units of the last digit that it gives."""
    rounded = round_to(answer.truth, answer.digits)
    last = (rounded or answer.value).adjusted() - answer.digits + 1
    return _EXACT.scaleb(_EXACT.subtract(answer.value, rounded), -last).normalize(_EXACT)
