"""Whether a curve describes the answers, and an estimate of the horizon without a curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numbench.horizon.psychometric import Floats, Posterior
from numbench.stats.isotonic import non_increasing

DRAWS = 1000
"""Draws from the posterior for the p-value."""

MISFIT = 0.01
"""Below this p-value, the curve does not describe the answers.

The p-values are conservative: below 0.01 are at most 0.5 % of those of models that follow the
curve. So of runs of twelve such tasks, about 5 % or less have one whose estimate is replaced.
"""

DOUBTFUL = 0.05
"""Between `MISFIT` and this p-value, it is doubtful whether the curve describes the answers."""


class SizeCount(NamedTuple):
    """The answers at a size.

    right: the number of right answers; not an integer if items have several samples. total: the
    number of items. truncated: the number of answers that the token limit cut off. tokens: their
    mean number of generated tokens; None: not known. guess: the probability of a right guess.
    """

    size: int
    right: float
    total: int
    truncated: int = 0
    tokens: float | None = None
    guess: float = 0.0


def fit_p_value(posterior: Posterior, counts: tuple[SizeCount, ...], seed: int = 1) -> float:
    """Return the posterior predictive p-value of a curve (Gelman, Meng and Stern 1996).

    Curves are drawn from the posterior. The discrepancy of a curve is how much better isotonic
    regression describes the counts: twice the difference of the log-likelihoods. The p-value is the
    share of curves whose discrepancy from counts drawn from the curve is at least as large as that
    from the observed counts.
    """
    rng = np.random.default_rng(seed)
    index = [posterior.sizes.index(count.size) for count in counts]
    p = posterior.sample_predictions(DRAWS, rng)[:, index]
    total = np.array([count.total for count in counts], np.int64)
    guess = np.array([count.guess for count in counts])
    observed = np.array([[count.right for count in counts]], np.float64)
    replicated = rng.binomial(total, p).astype(np.float64)
    return float(
        np.mean(
            _discrepancy(replicated, total, guess, p) >= _discrepancy(observed, total, guess, p)
        )
    )


def isotonic_crossing(counts: tuple[SizeCount, ...], level: float = 0.5) -> float | None:
    """Return the size where the isotonic regression of the success rates falls through `level`.

    Rates are without guessing: (rate − guess) / (1 − guess). They never increase with size;
    between two sizes, the curve is linear in ln s. None if it does not cross the level.
    """
    if not counts:
        return None
    rates = _isotonic_rates(counts)
    if rates[0] < level or rates[-1] > level:
        return None
    logs = np.log([count.size for count in counts])
    after = int(np.argmax(rates <= level))
    if after == 0 or rates[after] == rates[after - 1]:
        return float(np.exp(logs[after]))
    share = (rates[after - 1] - level) / (rates[after - 1] - rates[after])
    return float(np.exp(logs[after - 1] + share * (logs[after] - logs[after - 1])))


def largest_rate(counts: tuple[SizeCount, ...]) -> float:
    """Return the isotonic success rate at the smallest size, without guessing; 0 without answers.

    It is the largest share of correct answers up to any size.
    """
    return float(_isotonic_rates(counts)[0]) if counts else 0.0


def isotonic_rates(counts: tuple[SizeCount, ...]) -> Floats:
    """Return the success rates that fit the counts best and never increase without guessing."""
    guess = np.array([count.guess for count in counts])
    return np.asarray(guess + (1 - guess) * _isotonic_rates(counts))


def _isotonic_rates(counts: tuple[SizeCount, ...]) -> Floats:
    """Return the non-increasing rates without guessing, weighted by answers."""
    guess = np.array([count.guess for count in counts])
    right = np.array([[count.right for count in counts]], np.float64)
    total = np.array([count.total for count in counts], np.int64)
    return np.asarray(_isotonic(right, total, guess)[0])


def _isotonic(right: Floats, total: NDArray[np.int64], guess: Floats) -> Floats:
    """Return the isotonic regression without guessing of every row of `right`."""
    weights = total * (1 - guess) ** 2
    return non_increasing((right / total - guess) / (1 - guess), weights)


def _discrepancy(right: Floats, total: NDArray[np.int64], guess: Floats, p: Floats) -> Floats:
    """Return twice the difference of the log-likelihoods of isotonic regression and curves."""
    fitted = guess + (1 - guess) * np.clip(_isotonic(right, total, guess), 0, 1)
    return np.asarray(
        2 * (_log_likelihood(right, total, fitted) - _log_likelihood(right, total, p))
    )


def _log_likelihood(right: Floats, total: NDArray[np.int64], p: Floats) -> Floats:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray((right * np.log(p) + (total - right) * np.log1p(-p)).sum(axis=-1))
