"""The evidence that some answers come from float64 arithmetic, as of a calculator or of code.

An answer is decisive if its digits separate the float64 result from the exact value. The
hypothesis with share π says that each decisive answer is the float64 result with probability π, and
is otherwise distributed as without a calculator. With the probability q of a float64 result
without a calculator, from the errors of the run's other answers (`chance`), the likelihood ratio of
an answer is 1 − π + π / q if it is the float64 result, and 1 − π otherwise. The Bayes factor of a
run is the product's mean over all shares π. Without a calculator it exceeds a bound b with
probability 1 / b at most (Markov's inequality), so that the number of answers and questions needs
no further correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from numbench.forensics.agreement import FLOAT64_DIGITS, readings, round_to
from numbench.forensics.answers import AnswersByTask, NumericAnswer
from numbench.forensics.chance import ChanceModel
from numbench.stats.intervals import Interval

FLAGGED_FROM = 1000.0
"""Bayes factor from which a run is flagged."""

Verdict = Literal["float64 arithmetic", "undecided", "no sign"]

_STEPS = 4000


class DecisiveAnswer(NamedTuple):
    """An answer whose digits separate the float64 result from the exact value.

    is_float64, is_exact: which of the two it is; neither if it is another number. chance: the
    probability q of a float64 result without a calculator.
    """

    is_float64: bool
    is_exact: bool
    chance: float

    @property
    def likelihood_ratio(self) -> float:
        """How many times more probable the answer is from float64 arithmetic than without it.

        0 if it is not the float64 result.
        """
        return 1 / self.chance if self.is_float64 else 0.0


class CalculatorEvidence(NamedTuple):
    """The evidence of a run.

    log10_factor: of the Bayes factor. share: the 95% interval of the share π of answers from
    float64 arithmetic.
    """

    decisive: Sequence[DecisiveAnswer]
    log10_factor: float
    share: Interval

    @property
    def is_flagged(self) -> bool:
        """Whether the answers show float64 arithmetic."""
        return self.log10_factor >= math.log10(FLAGGED_FROM)

    @property
    def verdict(self) -> Verdict:
        """What the Bayes factor says."""
        if self.is_flagged:
            return "float64 arithmetic"
        return "no sign" if self.log10_factor <= -1 else "undecided"

    @property
    def float64(self) -> list[DecisiveAnswer]:
        """The answers that are the float64 result, strongest evidence first."""
        known = [answer for answer in self.decisive if answer.is_float64]
        return sorted(known, key=lambda answer: answer.chance)


def calculator_evidence(answers: AnswersByTask) -> CalculatorEvidence:
    """Weigh all numeric answers of a run, correct and wrong."""
    decisive = [answer for of_task in answers.values() for answer in _decisive_answers(of_task)]
    log_factor, share = weigh([answer.likelihood_ratio for answer in decisive])
    return CalculatorEvidence(decisive, log_factor / math.log(10), share)


def _decisive_answers(answers: Sequence[NumericAnswer]) -> Iterator[DecisiveAnswer]:
    given = [answer.given(FLOAT64_DIGITS) for answer in answers]
    chance = ChanceModel(given, FLOAT64_DIGITS)
    for answer, known in zip(answers, given, strict=True):
        if answer.question.float64 is None:
            continue
        # Printed results are rounded. One that is truncated is rather the exact value, off by one.
        float64 = round_to(answer.question.float64, known.digits)
        exact = readings((known.truth,), known.digits)
        if float64 not in exact:
            trials = chance.trials(known, (float64,))
            q = max((matching + 1) / (others + 1) for matching, others in trials)
            yield DecisiveAnswer(known.value == float64, known.value in exact, min(1.0, q))


def weigh(ratios: Sequence[float]) -> tuple[float, Interval]:
    """Return the natural logarithm of the Bayes factor and the 95% interval of the share π.

    ratios: of each answer's likelihoods by float64 arithmetic and without it. All shares in [0, 1]
    have the same prior probability.
    """
    shares = (np.arange(_STEPS) + 0.5) / _STEPS
    # Finer steps near 0, where a run without a calculator is.
    shares = shares**3
    weights = np.diff((np.arange(_STEPS + 1) / _STEPS) ** 3)
    log_likelihood = np.zeros(_STEPS)
    for ratio in ratios:
        log_likelihood += np.log1p(shares * (ratio - 1))
    largest = float(log_likelihood.max())
    posterior = weights * np.exp(log_likelihood - largest)
    total = float(posterior.sum())
    cumulative = np.cumsum(posterior) / total
    low, high = np.interp([0.025, 0.975], cumulative, shares)
    return largest + math.log(total), Interval(float(low), float(high))
