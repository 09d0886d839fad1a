"""Expected scores on other items, and their difference from the score on the answered ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.calibration.response_model import (
    FloatArray,
    ResponseModel,
    feature_matrix,
    fit_features,
    fit_weighted,
    logistic,
)
from numbench.records import Item
from numbench.stats.bootstrap import percentile_bounds
from numbench.stats.intervals import Interval, score_interval
from numbench.stats.resampling import bootstrap_weights

RESAMPLES = 1000

MAX_WEIGHT = 10.0
"""The largest weight of an answered item, relative to the mean."""


class ExpectedScore(NamedTuple):
    """The expected score on a set of items, in percent.

    offset: the score minus the expected score on the answered items, with its 95 % interval; None
    if there are too few right, or too few wrong, answers to tell which items are hard. The interval
    of the score is then that of the observed score. outside: the share of the items with a feature
    beyond the range of the answered ones. resampled_offsets: what the interval of the offset is
    based on; the same items are resampled for every model with as many answers.
    """

    score: float
    interval: Interval
    offset: float | None
    offset_interval: Interval | None
    outside: float
    resampled_offsets: FloatArray | None = None


class _Target(NamedTuple):
    """Items whose expected score is wanted: their columns, and weights of the answered items.

    weights: how much more often the target has such items, relative to the answered ones; sum 1.
    """

    matrix: FloatArray
    weights: FloatArray
    outside: float


def expected_scores(
    items: Sequence[Item],
    scores: Sequence[float],
    targets: Sequence[Sequence[Item]],
    resamples: int = RESAMPLES,
) -> list[ExpectedScore]:
    """Return the expected score on each target, from scores in [0, 1] of answered items.

    All are items of one task. The mean prediction of the target's items is corrected by the mean
    error on the answered items, weighted so that they have the target's features: the estimate is
    right if either the response model or the weights are (augmented inverse-probability weighting;
    Robins, Rotnitzky and Zhao, 1994). The intervals are percentiles over resampled answered items,
    the model fitted again to each. Raises ValueError like `fit_response_model`.
    """
    values = np.asarray(scores, np.float64)
    answered = feature_matrix(items)
    model = fit_features(answered, values)
    compared = [_target(model, answered, feature_matrix(target)) for target in targets]
    if model.penalty is None:
        mean, interval = 100 * float(values.mean()), score_interval(100 * values)
        return [ExpectedScore(mean, interval, None, None, t.outside) for t in compared]
    matrix = model.columns.matrix(answered)
    once = np.ones((1, len(values)))
    estimates = _estimates(compared, matrix, values, once, model.coefficients[None, :])[0]
    resampled = _resampled_estimates(model, compared, matrix, values, resamples)
    low, high = percentile_bounds(resampled)
    return [
        ExpectedScore(
            float(estimates[2 * i]),
            Interval(max(0.0, float(low[2 * i])), min(100.0, float(high[2 * i]))),
            float(estimates[2 * i + 1]),
            Interval(float(low[2 * i + 1]), float(high[2 * i + 1])),
            target.outside,
            resampled[:, 2 * i + 1],
        )
        for i, target in enumerate(compared)
    ]


def _target(model: ResponseModel, answered: FloatArray, target: FloatArray) -> _Target:
    """Return a target; a model of which items are the target's gives the weights."""
    both = np.concatenate([answered, target])
    membership = np.r_[np.zeros(len(answered)), np.ones(len(target))]
    chance = fit_features(both, membership).predict_features(answered)
    odds = chance / (1 - chance)
    weights = np.minimum(odds, MAX_WEIGHT * odds.mean())
    return _Target(
        model.columns.matrix(target), weights / weights.sum(), model.columns.outside(target)
    )


def _resampled_estimates(
    model: ResponseModel,
    targets: Sequence[_Target],
    matrix: FloatArray,
    scores: FloatArray,
    resamples: int,
) -> FloatArray:
    assert model.penalty is not None
    parts = []
    for weights in bootstrap_weights(len(scores), resamples, "response model"):
        start = np.broadcast_to(model.coefficients, (len(weights), matrix.shape[1]))
        fits = fit_weighted(matrix, scores, weights, model.penalty, start)
        parts.append(_estimates(targets, matrix, scores, weights, fits))
    return np.concatenate(parts)


def _estimates(
    targets: Sequence[_Target],
    matrix: FloatArray,
    scores: FloatArray,
    times: FloatArray,
    coefficients: FloatArray,
) -> FloatArray:
    """Return score and offset of each target in percent, shape (fits, 2 · targets).

    times: how often each fit has each answered item.
    """
    predicted = logistic(coefficients @ matrix.T)
    errors = times * (scores - predicted)
    columns = []
    for target in targets:
        weighted = times @ target.weights
        score = logistic(coefficients @ target.matrix.T).mean(axis=1)
        score += (errors @ target.weights) / weighted
        answered = predicted.mean(axis=1) + errors.mean(axis=1)
        columns += [100 * score, 100 * (score - answered)]
    return np.column_stack(columns)
