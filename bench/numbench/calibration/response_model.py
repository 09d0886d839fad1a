"""A response model: the expected score of an item from its features.

Logistic regression on features, each with a linear term and hinges, fitted with a ridge penalty
that AIC chooses (deviance / dispersion + 2 · effective parameters; Hastie and Tibshirani,
Generalized Additive Models, 1990). Scores may be fractions in [0, 1], such as log-sMAPE: the
quasi-likelihood of Papke and Wooldridge (1996) models their mean.

    model = fit_response_model(items, exact_matches)
    model.predict(other_items).mean()     # the expected score on other items of the task
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.calibration.features import item_features
from numbench.records import Item

FloatArray = npt.NDArray[np.float64]

MIN_EVENTS = 10
"""Fewer right, or fewer wrong, answers than this do not show which items are hard: the model then
predicts the same score for every item."""

PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Ridge penalties of the coefficients of standardized columns, from which AIC chooses."""

HINGE_QUANTILES = (0.2, 0.5, 0.8)
_MIN_LEVELS = 6
"""A feature with fewer different values has no hinges."""

_ITERATIONS = 50
_TOLERANCE = 1e-8
_LARGEST_LOGIT = 15.0


class DesignColumns(NamedTuple):
    """How features become columns: clipped to the range of the fitted items, then standardized.

    Clipping keeps the model from extrapolating: an item beyond the range counts as one at its end.
    """

    names: tuple[str, ...]
    low: FloatArray
    high: FloatArray
    hinges: tuple[tuple[int, float], ...]
    mean: FloatArray
    scale: FloatArray

    def matrix(self, features: FloatArray) -> FloatArray:
        """Return the columns of features of shape (items, names), the first of them 1."""
        columns = (_expand(features, self.low, self.high, self.hinges) - self.mean) / self.scale
        return np.column_stack([np.ones(len(features)), columns])

    def outside(self, features: FloatArray) -> float:
        """Return the share of items with a feature beyond the range of the fitted items."""
        beyond = (features < self.low) | (features > self.high)
        return float(beyond.any(axis=1).mean())


class ResponseModel(NamedTuple):
    """A fitted model of one task. penalty: None if it predicts the same score for every item."""

    columns: DesignColumns
    coefficients: FloatArray
    penalty: float | None

    def predict(self, items: Sequence[Item]) -> FloatArray:
        """Return the expected score of each item, in [0, 1]."""
        return self.predict_features(feature_matrix(items))

    def predict_features(self, features: FloatArray) -> FloatArray:
        """Return the expected score for each row of a feature matrix."""
        return logistic(self.columns.matrix(features) @ self.coefficients)


def feature_matrix(items: Sequence[Item]) -> FloatArray:
    """Return the features of the items of one task, shape (items, features)."""
    return np.array([list(item_features(item).values()) for item in items], np.float64)


def fit_response_model(items: Sequence[Item], scores: Sequence[float]) -> ResponseModel:
    """Fit a model to the scores in [0, 1] of items of one task.

    Raises ValueError if there are no items, their number is not that of the scores, or they are of
    a task without features.
    """
    names = tuple(item_features(items[0])) if items else ()
    return fit_features(feature_matrix(items), np.asarray(scores, np.float64), names)


def fit_features(
    features: FloatArray, scores: FloatArray, names: Sequence[str] = ()
) -> ResponseModel:
    """Fit a model to the scores of rows of a feature matrix."""
    if len(features) == 0 or len(features) != len(scores):
        raise ValueError(f"{len(features)} items and {len(scores)} scores")
    columns = _design_columns(features, names)
    matrix = columns.matrix(features)
    if min(scores.sum(), (1 - scores).sum()) < MIN_EVENTS:
        coefficients = np.zeros(matrix.shape[1])
        # Half a right and half a wrong answer more keep the logit finite.
        coefficients[0] = _logit((scores.sum() + 0.5) / (len(scores) + 1))
        return ResponseModel(columns, coefficients, None)
    fits = {penalty: _fit(matrix, scores, penalty) for penalty in PENALTIES}
    dispersion = _dispersion(matrix, scores, fits[PENALTIES[0]], PENALTIES[0])
    criteria = {
        penalty: 2 * len(scores) * log_loss(scores, logistic(matrix @ fit)) / dispersion
        + 2 * _effective_parameters(matrix, fit, penalty)
        for penalty, fit in fits.items()
    }
    penalty = min(criteria, key=criteria.__getitem__)
    return ResponseModel(columns, fits[penalty], penalty)


def _design_columns(features: FloatArray, names: Sequence[str]) -> DesignColumns:
    low, high = features.min(axis=0), features.max(axis=0)
    hinges = tuple(
        (index, float(knot))
        for index, column in enumerate(features.T)
        if len(np.unique(column)) >= _MIN_LEVELS
        for knot in np.unique(np.quantile(column, HINGE_QUANTILES))
        if low[index] < knot < high[index]
    )
    expanded = _expand(features, low, high, hinges)
    scale = expanded.std(axis=0)
    # A constant column is 0 after centring, whatever its scale.
    scale[scale < 1e-12] = 1.0
    return DesignColumns(tuple(names), low, high, hinges, expanded.mean(axis=0), scale)


def _expand(
    features: FloatArray, low: FloatArray, high: FloatArray, hinges: Sequence[tuple[int, float]]
) -> FloatArray:
    clipped = np.clip(features, low, high)
    extra = [np.maximum(0.0, clipped[:, index] - knot) for index, knot in hinges]
    return np.column_stack([clipped, *extra])


def _fit(matrix: FloatArray, scores: FloatArray, penalty: float) -> FloatArray:
    start = np.zeros((1, matrix.shape[1]))
    start[0, 0] = _logit(scores.mean())
    coefficients: FloatArray = fit_weighted(
        matrix, scores, np.ones((1, len(scores))), penalty, start
    )[0]
    return coefficients


def fit_weighted(
    matrix: FloatArray, scores: FloatArray, weights: FloatArray, penalty: float, start: FloatArray
) -> FloatArray:
    """Return the coefficients for each row of weights, shape (rows, columns), by Newton's method.

    Each step is halved as long as the penalized likelihood would fall. The first column is not
    penalized.
    """
    ridge = _ridge(matrix.shape[1], penalty)
    products = (matrix[:, :, None] * matrix[:, None, :]).reshape(len(matrix), -1)
    coefficients = start.copy()
    objective = _objective(matrix, scores, weights, ridge, coefficients)
    for _ in range(_ITERATIONS):
        expected = logistic(coefficients @ matrix.T)
        gradient = (weights * (scores - expected)) @ matrix - ridge * coefficients
        curvature = (weights * expected * (1 - expected)) @ products
        hessian = curvature.reshape(len(weights), *2 * (matrix.shape[1],)) + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        for _ in range(30):
            proposed = _objective(matrix, scores, weights, ridge, coefficients + step)
            worse = proposed < objective - 1e-9 * np.abs(objective)
            if not worse.any():
                break
            step[worse] /= 2
        coefficients, objective = coefficients + step, proposed
        if np.abs(step).max() < _TOLERANCE:
            break
    return coefficients


def _objective(
    matrix: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
    ridge: FloatArray,
    coefficients: FloatArray,
) -> FloatArray:
    logits = coefficients @ matrix.T
    likelihood = weights * (scores * logits - np.logaddexp(0.0, logits))
    return np.asarray(likelihood.sum(axis=1) - (ridge * coefficients**2).sum(axis=1) / 2)


def _effective_parameters(matrix: FloatArray, coefficients: FloatArray, penalty: float) -> float:
    expected = logistic(matrix @ coefficients)
    information = matrix.T @ (matrix * (expected * (1 - expected))[:, None])
    penalized = information + np.diag(_ridge(len(coefficients), penalty))
    return float(np.trace(np.linalg.solve(penalized, information)))


def _dispersion(
    matrix: FloatArray, scores: FloatArray, coefficients: FloatArray, penalty: float
) -> float:
    """Return the variance of the scores relative to that of right and wrong answers, which is 1."""
    if np.isin(scores, (0.0, 1.0)).all():
        return 1.0
    expected = logistic(matrix @ coefficients)
    squares = ((scores - expected) ** 2 / (expected * (1 - expected))).sum()
    freedom = len(scores) - _effective_parameters(matrix, coefficients, penalty)
    return float(squares / freedom)


def _ridge(columns: int, penalty: float) -> FloatArray:
    """Return the penalty of each coefficient; that of the first, the intercept, is almost none."""
    ridge = np.full(columns, penalty)
    ridge[0] = 1e-6
    return ridge


def log_loss(scores: FloatArray, expected: FloatArray) -> float:
    """Return the mean negative log-likelihood of scores, in nats per item."""
    expected = np.clip(expected, 1e-12, 1 - 1e-12)
    return float(-(scores * np.log(expected) + (1 - scores) * np.log(1 - expected)).mean())


def logistic(logits: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−x)), finite for every x."""
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT))))


def _logit(share: float) -> float:
    share = min(max(share, 1e-6), 1 - 1e-6)
    return float(np.log(share / (1 - share)))
