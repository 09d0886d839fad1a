"""Whether a curve describes the answers, and an estimate of the horizon without a curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numbench.horizon.psychometric import Floats, Posterior
from numbench.stats.random_streams import uniform_numbers

DRAWS = 1000
"""Draws from the posterior for the p-value."""

DOUBTFUL, MISFIT = 0.05, 0.01
"""p-values below which it is doubtful whether the curve describes the answers, and below which it
does not.

In both cases the isotonic crossing takes the place of h50. Where the curve is wrong, such as with a
plateau, the error of the crossing is half of that of the curve; where the curve is right, at most
4% of p-values are below `DOUBTFUL`.
"""


class SizeCount(NamedTuple):
    """The answers at a size.

    right: the number of right answers; not an integer if items have several samples. total: the
    number of items. tokens: their mean number of generated tokens; None: not known. guess: the
    probability of a right guess.
    """

    size: int
    right: float
    total: int
    tokens: float | None = None
    guess: float = 0.0


def fit_p_value(posterior: Posterior, counts: tuple[SizeCount, ...]) -> float:
    """Return the posterior predictive p-value of a curve (Gelman, Meng and Stern 1996).

    Curves are drawn from the posterior. The discrepancy of a curve is how much better isotonic
    regression describes the counts: twice the difference of the log-likelihoods. The p-value is the
    share of curves whose discrepancy from counts drawn from the curve is at least as large as that
    from the observed counts.
    """
    if not counts:
        return 1.0
    index = [posterior.sizes.index(count.size) for count in counts]
    p = posterior.sample_predictions(DRAWS)[:, index]
    draws = [uniform_numbers((DRAWS, c.total), f"horizon answers {c.size}") for c in counts]
    drawn = [(u < p[:, [i]]).sum(axis=1) for i, u in enumerate(draws)]
    right, total, guess = _columns(counts)

    def discrepancy(right: Floats) -> Floats:
        fitted = guess + (1 - guess) * np.clip(_isotonic(right, total, guess), 0, 1)
        of_fitted, of_curves = (_log_likelihood(right, total, rates) for rates in (fitted, p))
        return np.asarray(2 * (of_fitted - of_curves))

    expected = discrepancy(np.column_stack(drawn).astype(np.float64))
    return float(np.mean(expected >= discrepancy(right[None, :])))


def isotonic_crossing(counts: tuple[SizeCount, ...], level: float = 0.5) -> float | None:
    """Return the size where the isotonic regression of the success rates falls through `level`.

    Rates are without guessing: (rate − guess) / (1 − guess). They never increase with size;
    between two sizes, the curve is linear in ln s. None if it does not cross the level.
    """
    rates = _without_guesses(counts)
    if not counts or rates[0] < level or rates[-1] > level:
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
    return float(_without_guesses(counts)[0]) if counts else 0.0


def isotonic_rates(counts: tuple[SizeCount, ...]) -> Floats:
    """Return the success rates that fit the counts best and never increase without guessing."""
    guess = _columns(counts)[2]
    return np.asarray(guess + (1 - guess) * _without_guesses(counts))


def _columns(counts: tuple[SizeCount, ...]) -> Floats:
    """Return the right answers, all answers and the probability of a right guess, by size."""
    values = [(count.right, count.total, count.guess) for count in counts]
    return np.array(values, np.float64).reshape(-1, 3).T


def _without_guesses(counts: tuple[SizeCount, ...]) -> Floats:
    """Return the non-increasing rates without guessing."""
    right, total, guess = _columns(counts)
    return np.asarray(_isotonic(right[None, :], total, guess)[0]) if counts else right


def _isotonic(right: Floats, total: Floats, guess: Floats) -> Floats:
    """Return the isotonic regression without guessing of every row of `right`, by answers."""
    # Deferred: it takes a third of a second to load, and reports without horizons do not need it.
    from scipy.optimize import isotonic_regression

    rates, weights = (right / total - guess) / (1 - guess), total * (1 - guess) ** 2
    fitted = [isotonic_regression(row, weights=weights, increasing=False).x for row in rates]
    return np.array(fitted, np.float64)


def _log_likelihood(right: Floats, total: Floats, p: Floats) -> Floats:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray((right * np.log(p) + (total - right) * np.log1p(-p)).sum(axis=-1))
