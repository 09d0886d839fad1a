"""Simulate many measurements of a horizon at once, on models whose probabilities are known.

Sizes are chosen as by `numbench.horizon.adaptive.AdaptiveDesign`, for all measurements with the
same matrix products; a test compares the two choice by choice. Estimates, intervals and p-values
come from the shipped code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.horizon import CERTAINTY, Limits
from numbench.horizon.adaptive import TokenCosts, is_about_curve, round_size
from numbench.horizon.psychometric import (
    LOG2_HORIZONS,
    NEGLIGIBLE_WEIGHT,
    Posterior,
)

Array = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
RoundSize = Callable[[int], int]

_CHUNK = 100
"""Measurements that are computed at once: their posteriors take 100 MB."""


class Simulated(NamedTuple):
    """Measurements, in no particular order.

    right, total: answers by size, shape (measurements, sizes). tokens: of all questions and
    answers. model: which row of the probabilities each measurement was drawn from.
    """

    right: Counts
    total: Counts
    tokens: Array
    model: Counts


class Tokens(NamedTuple):
    """Tokens by size. spread: standard deviation of the logarithm of those of an answer."""

    prompt: Array
    expected_answer: Array
    answer: Array
    spread: float


def simulate(
    probabilities: Array,
    sizes: Sequence[int],
    guess: Sequence[float],
    tokens: Tokens,
    limits: Limits,
    seed: int,
    rounds: RoundSize | None = round_size,
) -> Simulated:
    """Return one measurement per row of `probabilities`, shape (measurements, sizes).

    rounds: the size of a round after a number of answers; None: a uniform grid, with every
    fourth size in a round.
    """
    rng = np.random.default_rng(seed)
    parts: list[Simulated] = []
    for start in range(0, len(probabilities), _CHUNK):
        chunk = _Measurements(probabilities[start : start + _CHUNK], sizes, guess, tokens, rng)
        parts.extend(
            part._replace(model=part.model + start) for part in chunk.finished(limits, rounds)
        )
    return Simulated(*map(np.concatenate, zip(*parts, strict=True)))


class _Measurements:
    """Measurements that are still going on: all have the same number of answers."""

    def __init__(
        self,
        probabilities: Array,
        sizes: Sequence[int],
        guess: Sequence[float],
        tokens: Tokens,
        rng: np.random.Generator,
    ) -> None:
        posterior = Posterior(sizes, guess)
        self._sizes = posterior.sizes
        self._p = posterior._likelihood.p
        self._grid = _log_likelihoods(posterior)
        self._log_prior = posterior._log_weights.ravel().astype(np.float32)
        self._costs = tokens
        self._features = np.column_stack([np.ones(len(sizes)), np.log(sizes) - np.log(sizes[0])])
        self._probabilities, self._rng = probabilities, rng
        count = len(probabilities)
        self._right = np.zeros(probabilities.shape, np.int64)
        self._total = np.zeros(probabilities.shape, np.int64)
        self._tokens = np.zeros(count)
        self._model = np.arange(count)
        self._gram = np.tile(TokenCosts._RIDGE * np.eye(2), (count, 1, 1))
        self._moment = np.zeros((count, 2))

    def finished(self, limits: Limits, rounds: RoundSize | None) -> Iterator[Simulated]:
        """Yield the measurements as they end."""
        answered, previous = 0, np.full(len(self._model), np.inf)
        while len(self._model):
            weights = self._posterior()
            deviation = log2_horizon_deviations(weights)
            is_precise = np.maximum(previous, deviation) <= limits.precision
            done = is_precise | is_settled(weights, self._sizes) | (answered >= limits.max_items)
            yield Simulated(
                self._right[done], self._total[done], self._tokens[done], self._model[done]
            )
            self._keep(~done)
            previous = deviation[~done]
            if not len(self._model):
                return
            if rounds is None:
                chosen = np.tile(self._part_of_grid(answered), (len(self._model), 1))
            else:
                count = min(rounds(answered), limits.max_items - answered)
                chosen = self._choose(weights[~done], count)
            self._answer(chosen)
            answered += chosen.shape[1]

    def _part_of_grid(self, answered: int) -> Counts:
        """Return every fourth size, beginning at another one than in the last round."""
        return np.arange(answered * 4 // len(self._sizes) % 4, len(self._sizes), 4)

    def _posterior(self) -> Singles:
        """Return the weights, shape (measurements, horizons, slopes · lapses)."""
        of_right, of_wrong = self._grid
        used = np.flatnonzero(self._total.any(axis=0))
        right = self._right[:, used].astype(np.float32)
        wrong = (self._total - self._right)[:, used].astype(np.float32)
        log_weights = self._log_prior + right @ of_right[used] + wrong @ of_wrong[used]
        return _normalized(log_weights).reshape(len(right), *self._p.shape[1:])

    def _choose(self, weights: Singles, count: int) -> Counts:
        """Return the sizes of a round by their index, shape (measurements, count)."""
        likely = np.flatnonzero((weights.sum(axis=2) > NEGLIGIBLE_WEIGHT).any(axis=0))
        likely = np.arange(likely[0], likely[-1] + 1)
        p = np.ascontiguousarray(self._p[:, likely])
        by_horizon_first = np.ascontiguousarray(p.transpose(1, 2, 0))
        of_right, of_wrong = (
            part.reshape(self._p.shape)[:, likely].reshape(len(p), -1) for part in self._grid
        )
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights[:, likely]).reshape(len(weights), -1)
        tokens = self._expected_tokens()
        chosen: list[Counts] = []
        entropy = _entropy(by_horizon_first)
        for position in range(count):
            w = _normalized(log_weights).reshape(len(weights), len(likely), -1)
            # Shape (horizons, measurements, sizes).
            joint = np.matmul(w.transpose(1, 0, 2), by_horizon_first)
            if is_about_curve(position):
                information = _entropy(joint.sum(axis=0)) - np.matmul(
                    w.transpose(1, 0, 2), entropy
                ).sum(axis=0)
            else:
                information = _information(joint, w.sum(axis=2))
            size = np.argmax(information / tokens, axis=1)
            chosen.append(size)
            expected = joint.sum(axis=0)[np.arange(len(w)), size].astype(np.float32)[:, None]
            log_weights += expected * of_right[size] + (1 - expected) * of_wrong[size]
        return np.column_stack(chosen)

    def _answer(self, chosen: Counts) -> None:
        rows = np.arange(len(chosen))
        for size in chosen.T:
            right = self._rng.random(len(rows)) < self._probabilities[rows, size]
            noise = np.exp(self._costs.spread * self._rng.standard_normal(len(rows)))
            used = np.maximum(self._costs.answer[size] * noise, 1)
            self._right[rows, size] += right
            self._total[rows, size] += 1
            self._tokens += self._costs.prompt[size] + used
            features = self._features[size]
            self._gram += features[:, :, None] * features[:, None, :]
            ratio = np.log(used / self._costs.expected_answer[size])
            self._moment += features * ratio[:, None]

    def _expected_tokens(self) -> Array:
        correction = np.linalg.solve(self._gram, self._moment[:, :, None])[:, :, 0]
        answer = self._costs.expected_answer * np.exp(correction @ self._features.T)
        return np.asarray(self._costs.prompt + answer)

    def _keep(self, rows: npt.NDArray[np.bool_]) -> None:
        self._probabilities, self._model = self._probabilities[rows], self._model[rows]
        self._right, self._total = self._right[rows], self._total[rows]
        self._tokens = self._tokens[rows]
        self._gram, self._moment = self._gram[rows], self._moment[rows]


def log2_horizon_deviations(weights: Singles) -> Array:
    """Return the standard deviation of log₂ h50 of each measurement."""
    by_horizon = weights.sum(axis=2, dtype=np.float64)
    means = by_horizon @ LOG2_HORIZONS
    squares = (LOG2_HORIZONS - means[:, None]) ** 2
    return np.asarray(np.sqrt((by_horizon * squares).sum(axis=1)))


def is_settled(weights: Singles, sizes: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return which horizons are beyond the sizes, or between two neighbouring integers."""
    by_horizon = weights.sum(axis=2, dtype=np.float64)
    beyond = [by_horizon[:, np.log2(size) < LOG2_HORIZONS].sum(axis=1) for size in sizes]
    settled = (beyond[-1] >= CERTAINTY) | (beyond[0] <= 1 - CERTAINTY)
    for (low, more), (high, less) in pairwise(zip(sizes, beyond, strict=True)):
        if high == low + 1:
            settled |= more - less >= CERTAINTY
    return np.asarray(settled)


def _log_likelihoods(posterior: Posterior) -> tuple[Singles, Singles]:
    """Return the logarithms of p and 1 − p, shape (sizes, grid points)."""
    parts = [posterior._likelihood.of_answer(index) for index in range(len(posterior.sizes))]
    right, wrong = (
        np.array([part[side].ravel().astype(np.float32) for part in parts]) for side in (0, 1)
    )
    return right, wrong


def _normalized(log_weights: Singles) -> Singles:
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _information(joint: Singles, by_horizon: Singles) -> Array:
    """Return the information about log h50, shape (measurements, sizes)."""
    weight = np.maximum(by_horizon.T[:, :, None], np.float32(1e-30))
    given = (weight * _entropy(joint / weight)).sum(axis=0)
    return np.asarray(np.maximum(_entropy(joint.sum(axis=0)) - given, 0), np.float64)


def _entropy(p: Singles | Array) -> Singles:
    inside = np.minimum(np.maximum(p, np.float32(1e-7)), np.float32(1 - 1e-7))
    return np.asarray(-inside * np.log(inside) - (1 - inside) * np.log(1 - inside))
