"""Cross-validation of a response model: how well it predicts items that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.calibration.response_model import (
    FloatArray,
    feature_matrix,
    fit_features,
    log_loss,
)
from numbench.records import Item
from numbench.stats.rank_statistics import average_ranks

FOLDS = 10


class CrossValidation(NamedTuple):
    """Predictions of each item by models fitted to the other folds.

    predicted: expected scores in [0, 1], in the order of the items. skill: the share of the log
    loss of predicting the mean score that the model removes; 0: no better than the mean.
    auc: the probability that a right answer has a higher prediction than a wrong one; None for
    fractional scores. slope: of the regression of the
    scores on the predictions; 1: calibrated, below 1: too extreme. Both are None if the models
    predict the same score for every item.
    """

    predicted: FloatArray
    mean_score: float
    skill: float
    auc: float | None
    slope: float | None

    @property
    def bias(self) -> float:
        """The mean prediction minus the mean score."""
        return float(self.predicted.mean()) - self.mean_score


def cross_validate(items: Sequence[Item], scores: Sequence[float]) -> CrossValidation:
    """Return the predictions of FOLDS-fold cross-validation, the penalty chosen in each fold.

    Item i belongs to fold i modulo FOLDS: the items of a dataset are in random order.
    """
    return cross_validate_features(feature_matrix(items), np.asarray(scores, np.float64))


def cross_validate_features(features: FloatArray, scores: FloatArray) -> CrossValidation:
    """Do the same for a feature matrix."""
    fold = np.arange(len(scores)) % FOLDS
    constant = True
    predicted, mean = np.empty(len(scores)), np.empty(len(scores))
    for index in range(min(FOLDS, len(scores))):
        left_out = fold == index
        model = fit_features(features[~left_out], scores[~left_out])
        constant &= model.penalty is None
        predicted[left_out] = model.predict_features(features[left_out])
        mean[left_out] = (scores[~left_out].sum() + 0.5) / (np.count_nonzero(~left_out) + 1)
    skill = 1 - log_loss(scores, predicted) / log_loss(scores, mean)
    auc = None if constant else _auc(scores, predicted)
    slope = None if constant else _slope(scores, predicted)
    return CrossValidation(predicted, float(scores.mean()), skill, auc, slope)


def _auc(scores: FloatArray, predicted: FloatArray) -> float | None:
    right = scores == 1
    if not np.isin(scores, (0.0, 1.0)).all():
        return None
    n = np.count_nonzero(right)
    ranks = average_ranks(predicted)[right].sum()
    return float((ranks - n * (n + 1) / 2) / (n * (len(scores) - n)))


def _slope(scores: FloatArray, predicted: FloatArray) -> float:
    return float(np.cov(predicted, scores, ddof=0)[0, 1] / predicted.var())
