"""How often an answer agrees with given values by chance, from a run's other answers.

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

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import NamedTuple

from scipy import special

from numbench.forensics.agreement import GivenAnswer, round_to
from numbench.stats.intervals import ALPHA, Interval, wilson

_ENOUGH_ANSWERS = 20
_EXACT = Context(prec=200, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_FIVE = Decimal(5)


Trial = tuple[int, int]
"""How many of other answers would agree by chance, and how many answers these are."""


class AlternativeCount(NamedTuple):
    """How often wrong answers equal one alternative.

    decidable: wrong answers whose digits separate the alternative from the exact value. matches:
    those that agree with the alternative. expected: matches by chance, NaN if there is no match.
    p_value: the probability of so many by chance; adjusted: by Holm's method over all counts of the
    run.
    """

    task: str
    alternative: str
    decidable: int
    matches: int
    expected: float = math.nan
    p_value: float = 1.0
    adjusted: float = 1.0

    @property
    def share(self) -> Interval:
        """The 95% interval of the share of matches among the decidable answers."""
        return wilson(self.matches, self.decidable)

    @property
    def is_significant(self) -> bool:
        """Whether there are more matches than by chance."""
        return self.adjusted <= ALPHA


class WrongAnswers(NamedTuple):
    """The wrong answers of a run to the questions of a task that are compared.

    names: of each one, the alternatives that it equals. shortened: other answers, which are the
    exact value, rounded or truncated to the digits that they give; they are the result of no other
    computation, and are not compared.
    """

    task: str
    counts: Sequence[AlternativeCount]
    names: Sequence[Collection[str]]
    shortened: int = 0


class _SimilarAnswers:
    """The answers that are compared with those of as many digits.

    values: how often each is given, rounded to these digits. errors: in units of the last digit of
    the exact value, ascending.
    """

    def __init__(self, answers: Sequence[GivenAnswer], digits: int, limit: int) -> None:
        counts = Counter(a.digits for a in answers)
        most = digits
        while most < limit and sum(counts[n] for n in range(digits, most + 1)) <= _ENOUGH_ANSWERS:
            most += 1
        similar = [a for a in answers if digits <= a.digits <= most]
        self.total = len(similar)
        self.values = Counter(round_to(a.value, digits) for a in similar)
        self.errors = sorted(
            _difference(a.value, *_unit(a.truth, limit)) for a in similar if a.truth
        )


class ChanceModel:
    """The answers of one run to the questions of one task. limit: the most digits of an answer."""

    def __init__(self, answers: Sequence[GivenAnswer], limit: int) -> None:
        self._limit, self._total = limit, len(answers)
        self._units = Counter(
            _in_last_digits(a.value, round_to(a.truth, a.digits), a.digits) for a in answers
        )
        self._similar = {
            digits: _SimilarAnswers(answers, digits, limit)
            for digits in {a.digits for a in answers}
        }

    def trials(
        self, answer: GivenAnswer, targets: Collection[Decimal]
    ) -> tuple[Trial, Trial, Trial]:
        """Return how many of the other answers would be one of `targets` in place of `answer`.

        As they are, by their errors, and by units of the last digit. targets: with the digits of
        `answer`, which is one of the indexed answers.
        """
        digits, truth, limit = answer.digits, answer.truth, self._limit
        similar = self._similar[digits]
        errors = similar.errors
        rounded = round_to(truth, digits)
        exact, place = _unit(truth, limit)
        # At full precision the units are those of the answer: only the error itself fits.
        is_full = digits == limit
        has_same_units = is_full and bool(truth) and rounded.adjusted() == truth.adjusted()
        by_answer = by_error = by_unit = -(answer.value in targets)
        for value in targets:
            center = low = high = _difference(value, exact, place)
            units = center if has_same_units else _in_last_digits(value, rounded, digits)
            by_answer += similar.values.get(value, 0)
            by_unit += self._units.get(units, 0)
            if not truth:
                continue
            if not is_full:
                # Half a unit of the last digit.
                half = _EXACT.scaleb(_FIVE, (value or truth).adjusted() - digits - place)
                low, high = _EXACT.subtract(center, half), _EXACT.add(center, half)
            start = bisect_left(errors, low)
            if start < len(errors) and errors[start] <= high:
                by_error += bisect_right(errors, high, start) - start
        others = similar.total - 1
        return (by_answer, others), (max(0, by_error), others), (by_unit, self._total - 1)


def _unit(truth: Decimal, limit: int) -> tuple[Decimal, int]:
    """Return the rounded exact value and the place of its last digit, as a power of ten."""
    return round_to(truth, limit), truth.adjusted() - limit + 1


def _in_last_digits(value: Decimal, rounded: Decimal, digits: int) -> Decimal:
    """Return the error of a value of so many digits in units of the last one."""
    return _difference(value, rounded, (rounded or value).adjusted() - digits + 1)


def _difference(value: Decimal, exact: Decimal, place: int) -> Decimal:
    """Return the difference of two numbers in units of 10^place."""
    return _EXACT.scaleb(_EXACT.subtract(value, exact), -place)


def count_matches(
    task: str, alternative: str, matches: int, *trials: Sequence[Trial]
) -> AlternativeCount:
    """Return a count of matches with the number expected by chance, the largest by any of `trials`.

    trials: for each compared answer, pairs (matching other answers, other answers).
    """
    expected = max(map(expected_matches, trials))
    # The probability of at least so many events of a Poisson distribution.
    p_value = float(special.pdtrc(matches - 1, expected)) if matches else 1.0
    return AlternativeCount(task, alternative, len(trials[0]), matches, expected, p_value)


def expected_matches(trials: Iterable[Trial]) -> float:
    """Return the expected number of matches from pairs (matching other answers, other answers).

    The number of pairs that were looked at limits what can be known about a rare match: the pairs
    count as if one more of them matched, in each of the trials. A trial without other answers
    counts as a certain match.
    """
    rates = [matching / others if others else 1.0 for matching, others in trials]
    return math.fsum(rates) + len(rates) / (sum(others for _, others in trials) + 1)
