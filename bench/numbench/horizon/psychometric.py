"""The probability of a right answer as a function of size, and the posterior of its parameters.

    p(s) = γ + (1 − γ) · (1 − λ) · σ(β · (ln h − ln s) + c),   σ(c) = 1 / (2 (1 − λ))

with the probability γ(s) that a guess is right (known), lapse rate λ, slope β, and the horizon
h = h50: there, a model that does not guess would be right half of the time. With γ = λ = 0 this is
the logistic curve that crosses 50 % at h. The posterior is computed on a grid, as in QUEST+
(Watson 2017, Journal of Vision 17:10).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from numbench.stats.random_streams import uniform_numbers

Floats = NDArray[np.float64]
Real = TypeVar("Real", NDArray[np.float64], NDArray[np.float32])

GRID_STEP, REFINEMENT = 1 / 16, 8
LOG2_HORIZONS: Floats = np.arange(-3, 15 + GRID_STEP / 2, GRID_STEP)
"""log₂ h50 on the grid: from an eighth (every size fails) to 32,768.

The prior is uniform up to twice the largest size. If it favored horizons beyond the sizes, a
few right answers to the largest questions would seem to prove one.
"""

SLOPE_MEAN, SLOPE_SD = 1.5, 2.0
"""Prior of log₂ β: normal. Digits that fail independently have β ≈ 1.4 at h50."""

NO_LAPSES = 0.5
"""Prior probability that λ is 0.

Many models make no error where a question is small enough. Without a probability of its own,
λ = 0 would be the edge of the prior: the lapses that remain possible would make a shallow curve of
such a model look steeper, and its horizon more certain, than it is.
"""


class Grid(NamedTuple):
    """Slopes β and lapse rates λ of a posterior.

    scale: the prior of a λ that is not 0 is proportional to exp(−λ / scale).
    """

    slopes: tuple[float, ...]
    lapses: tuple[float, ...]
    scale: float


DESIGN = Grid(
    slopes=tuple(2.0 ** np.arange(-1.0, 5.01, 0.5)),
    lapses=(0.0, 0.01, 0.02, 0.04, 0.07, 0.11, 0.16),
    scale=0.05,
)
"""Of the posterior that chooses sizes and says when to stop."""

RESULT = Grid(
    slopes=tuple(2.0 ** np.arange(-1.0, 8.01, 0.5)),
    lapses=(*DESIGN.lapses, 0.23, 0.31, 0.4),
    scale=0.2,
)
"""Of the posterior whose estimates are reported: also of models that fail abruptly, or that make
errors at every size."""


NEGLIGIBLE_WEIGHT = 1e-9
"""Horizons of less weight are left out of expectations."""

_SMALLEST_P = 2.0**-23
"""A right answer is never impossible, nor a wrong one."""


class SizeEstimate(NamedTuple):
    """A size with its 95 % credible interval.

    low may be 0 and high infinite: then the size is outside the grid. 0 for the value: the level
    is not reached at any size.
    """

    value: float
    low: float
    high: float


def probabilities(log_horizon: Floats, slope: Floats, lapse: Floats, log_size: Floats) -> Floats:
    """Return p without guessing for arrays of parameters and ln sizes, which are broadcast."""
    at_horizon = 0.5 / (1 - lapse)
    x = slope * (log_horizon - log_size) + np.log(at_horizon) - np.log1p(-at_horizon)
    # Both exponents are at most 0, so that nothing overflows.
    share = np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))
    return np.asarray((1 - lapse) * share)


class _Likelihood:
    """p at every grid point, by size: shape horizons × (slopes · lapses)."""

    def __init__(self, sizes: tuple[int, ...], guess: tuple[float, ...], grid: Grid) -> None:
        self._sizes, self.guess = sizes, guess
        self._parameters = np.ix_(LOG2_HORIZONS * np.log(2), grid.slopes, grid.lapses)
        self._of_answer: dict[int, tuple[Floats, Floats]] = {}

    def _at(self, index: int) -> NDArray[np.float32]:
        horizons, slopes, lapses = self._parameters
        p = probabilities(horizons, slopes, lapses, np.log(self._sizes[index]))
        p = self.guess[index] + (1 - self.guess[index]) * p.reshape(len(LOG2_HORIZONS), -1)
        # In single precision, which is enough for expectations, the largest array is half as big.
        return np.clip(p, _SMALLEST_P, 1 - _SMALLEST_P).astype(np.float32)

    @cached_property
    def p(self) -> NDArray[np.float32]:
        """p at all sizes: what belongs to a size is contiguous."""
        return np.stack([self._at(index) for index in range(len(self._sizes))])

    @cached_property
    def entropy(self) -> NDArray[np.float32]:
        """The entropy of an answer at all sizes."""
        return _entropy(self.p)

    def of_answer(self, index: int) -> tuple[Floats, Floats]:
        """Return the log-likelihoods of a right and of a wrong answer at a size."""
        if index not in self._of_answer:
            p = self._at(index).astype(np.float64)
            self._of_answer[index] = np.log(p), np.log1p(-p)
        return self._of_answer[index]


_likelihood = lru_cache(maxsize=32)(_Likelihood)


class Posterior:
    """The posterior of horizon, slope and lapse rate, given answers at sizes of a grid.

    sizes: increasing. guess: the probability that a guess is right, by size, each in [0, 1).
    """

    def __init__(
        self, sizes: Sequence[int], guess: Sequence[float] | None = None, grid: Grid = DESIGN
    ) -> None:
        self.sizes, self.grid = tuple(sizes), grid
        chance = tuple(guess) if guess is not None else (0.0,) * len(self.sizes)
        self._likelihood = _likelihood(self.sizes, chance, grid)
        self._log_weights = np.tile(_log_prior(grid), (len(LOG2_HORIZONS), 1))
        self._log_weights[np.log2(self.sizes[-1]) + 1 < LOG2_HORIZONS] = -np.inf
        self._normalized: Floats | None = None

    @property
    def _weights(self) -> Floats:
        """The weights of the grid, whose sum is 1; computed when they are needed."""
        if self._normalized is None:
            self._normalized = _normalized(self._log_weights)
        return self._normalized

    def update(self, size: int, right: float, wrong: float) -> None:
        """Take the numbers of right and wrong answers at a size into account.

        They may be fractions: of an item with several samples, the share of right ones.
        """
        of_right, of_wrong = self._likelihood.of_answer(self.sizes.index(size))
        if right:
            self._log_weights += right * of_right
        if wrong:
            self._log_weights += wrong * of_wrong
        self._normalized = None

    def expect(self, size: int) -> None:
        """Take an answer into account as if it were right in the proportion that is expected."""
        p = float(self.predicted()[self.sizes.index(size)])
        self.update(size, p, 1 - p)

    def copy(self) -> Posterior:
        """Return a posterior that further answers change independently of this one."""
        other = copy(self)
        other._log_weights = self._log_weights.copy()
        return other

    def predicted(self) -> Floats:
        """Return the posterior mean of p at each size."""
        is_likely, weights = self._likely()
        return np.asarray(np.einsum("hk,shk->s", weights, self._likelihood.p[:, is_likely]))

    def information(self, of_curve: bool = False) -> Floats:
        """Return the expected information of one more answer, in nats, by size.

        It is about log h50, or about all parameters of the curve.
        """
        is_likely, weights = self._likely()
        if of_curve:
            mean = self.predicted()
            entropy = self._likelihood.entropy[:, is_likely]
            given = np.einsum("hk,shk->s", weights, entropy)
        else:
            by_horizon = weights.sum(axis=1)
            joint = np.einsum("hk,shk->sh", weights, self._likelihood.p[:, is_likely])
            mean, given = joint.sum(axis=1), _entropy(joint / by_horizon) @ by_horizon
        return np.asarray(np.maximum(_entropy(mean) - given, 0))

    def _likely(self) -> tuple[NDArray[np.bool_], Floats]:
        """Return which horizons are not negligible, and their weights."""
        is_likely = self.horizon_weights() > NEGLIGIBLE_WEIGHT
        return is_likely, self._weights[is_likely]

    def log2_horizon_deviation(self) -> float:
        """Return the standard deviation of log₂ h50."""
        weights = self.horizon_weights()
        return float(np.sqrt(weights @ (LOG2_HORIZONS - weights @ LOG2_HORIZONS) ** 2))

    def horizon(self, level: float = 0.5) -> SizeEstimate:
        """Return the size where p without guessing is `level`: median and 95 % interval."""
        if level == 0.5:
            log2_sizes, weights = _refined(self.horizon_weights())
        else:
            log2_sizes, group = _log2_sizes_at(level, self.grid)
            weights = np.bincount(group, self._weights.ravel()).astype(np.float64)
        middle = np.cumsum(weights) - weights / 2
        # The size of −∞, at which a level that no size reaches is, takes no part in interpolation.
        finite = max(log2_sizes[0], -1e300)
        wanted = np.interp((0.5, 0.025, 0.975), middle, [finite, *log2_sizes[1:]])
        return SizeEstimate(*np.exp2(wanted).tolist())

    def horizon_weights(self) -> Floats:
        """Return the posterior probability of each of `LOG2_HORIZONS`."""
        return np.asarray(self._weights.sum(axis=1))

    def sample_predictions(self, count: int) -> Floats:
        """Return p at each size for `count` draws from the posterior, shape (count, sizes)."""
        cumulative = np.cumsum(self._weights)
        uniform = uniform_numbers((count,), "horizon curves") * cumulative[-1]
        shape = (len(LOG2_HORIZONS), len(self.grid.slopes), len(self.grid.lapses))
        drawn = np.unravel_index(np.searchsorted(cumulative, uniform, side="right"), shape)
        parameters = (LOG2_HORIZONS * np.log(2), self.grid.slopes, self.grid.lapses)
        h, slope, lapse = (
            np.asarray(values)[index, None] for values, index in zip(parameters, drawn, strict=True)
        )
        guess = np.array(self._likelihood.guess)
        return np.asarray(guess + (1 - guess) * probabilities(h, slope, lapse, np.log(self.sizes)))


def _log_prior(grid: Grid) -> Floats:
    """Return the log prior of slope and lapse rate, flattened."""
    slopes, lapses = np.array(grid.slopes), np.array(grid.lapses)
    slope = -(((np.log2(slopes) - SLOPE_MEAN) / SLOPE_SD) ** 2) / 2
    lapse = np.diff(lapses, append=2 * lapses[-1] - lapses[-2]) * np.exp(-lapses / grid.scale)
    lapse *= (1 - NO_LAPSES) / lapse.sum()
    lapse[0] += NO_LAPSES
    return np.asarray((slope[:, None] + np.log(lapse)).ravel())


def _normalized(log_weights: Floats) -> Floats:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def _entropy(p: Real) -> Real:
    p = np.clip(p, 1e-7, 1 - 1e-7)
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


def _refined(weights: Floats) -> tuple[Floats, Floats]:
    """Return log₂ horizons between those of the grid as well, and the weights of all.

    Between two points of the grid, the logarithm of the density is linear. Steps or lines in the
    density itself would add to its variance: an interval of few steps would be too wide.
    """
    horizons = np.arange(LOG2_HORIZONS[0], LOG2_HORIZONS[-1], GRID_STEP / REFINEMENT)
    log_density = np.log(np.maximum(weights, np.finfo(np.float64).tiny))
    refined = np.exp(np.interp(horizons, LOG2_HORIZONS, log_density))
    return horizons, refined / refined.sum()


@lru_cache(maxsize=8)
def _log2_sizes_at(level: float, grid: Grid) -> tuple[Floats, NDArray[np.int64]]:
    """Return the different log₂ sizes at a level, increasing, and for every grid point its own.

    −∞: the level is not reached at any size. Interpolation needs different sizes.
    """
    slopes, lapses = (axis.ravel() for axis in np.meshgrid(grid.slopes, grid.lapses, indexing="ij"))
    middle = special.logit(0.5 / (1 - lapses))
    # Infinite or undefined where the lapse rate is 1 − level or more.
    wanted = special.logit(np.minimum(level / (1 - lapses), 1))
    shift = (middle - wanted) / slopes / np.log(2)
    sizes, group = np.unique((LOG2_HORIZONS[:, None] + shift).ravel(), return_inverse=True)
    return sizes, group
