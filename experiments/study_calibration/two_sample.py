"""Two-sample tests: do two sets of items have the same distribution of each feature?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.calibration.features import item_features, printed_number
from numbench.calibration.response_model import FloatArray
from numbench.records import Item
from numbench.stats.multiple_testing import holm
from numbench.stats.resampling import uniform_numbers
from numbench.tasks.number_sampling import MAX_LIST_LENGTH

PERMUTATIONS = 10_000
_CHUNK = 500
_PAIRS = ("addition", "multiplication", "division", "exponentiation")


class FeatureTest(NamedTuple):
    """The comparison of one feature: means, the largest difference of the two distributions, and
    the p-values of a permutation test, before and after Holm's correction over the task."""

    task: str
    feature: str
    published_mean: float
    mean: float
    distance: float
    p: float
    p_holm: float


def compare_items(published: Sequence[Item], items: Sequence[Item]) -> list[FeatureTest]:
    """Test every feature of the items of a task that is not constant.

    The statistic is that of Kolmogorov and Smirnov. Its distribution comes from permutations of
    the labels, because most features have few different values.
    """
    columns = [_all_features(item) for item in (*published, *items)]
    names = list(columns[0])
    values = np.array([[column[name] for name in names] for column in columns])
    kept = [i for i in range(len(names)) if len(np.unique(values[:, i])) > 1]
    first = len(published)
    distances, p_values = _permutation_test(values[:, kept], first)
    adjusted = holm(list(p_values))
    return [
        FeatureTest(
            published[0].task,
            names[i],
            float(values[:first, i].mean()),
            float(values[first:, i].mean()),
            float(distances[k]),
            float(p_values[k]),
            adjusted[k],
        )
        for k, i in enumerate(kept)
    ]


def _all_features(item: Item) -> dict[str, float]:
    """Return the features of the response model, and those of each operand."""
    features = dict(item_features(item))
    if item.task in _PAIRS:
        for index, operand in enumerate(map(printed_number, item.operands), 1):
            features[f"digits of operand {index}"] = operand.digits
            features[f"magnitude of operand {index}"] = operand.exponent
            features[f"sign of operand {index}"] = operand.is_negative
    else:
        elements = [printed_number(operand) for operand in item.operands]
        features["largest magnitude"] = max(element.exponent for element in elements)
        features["last place"] = min(element.last for element in elements)
        features["full length"] = float(len(elements) >= MAX_LIST_LENGTH)
    features["characters of the question"] = len(item.prompt)
    return features


def _permutation_test(values: FloatArray, first: int) -> tuple[FloatArray, FloatArray]:
    """Return distance and p-value of each column; the first rows are one sample."""
    total = len(values)
    labels = np.where(np.arange(total) < first, 1 / first, -1 / (total - first))
    orders = np.argsort(values, axis=0, kind="stable")
    observed = np.array(
        [_distance(labels[None, :], values, orders, c)[0] for c in _columns(values)]
    )
    exceeding = np.zeros(values.shape[1])
    for start in range(0, PERMUTATIONS, _CHUNK):
        shuffled = labels[
            np.argsort(uniform_numbers((_CHUNK, total), f"two samples {start}"), axis=1)
        ]
        for column in _columns(values):
            distances = _distance(shuffled, values, orders, column)
            exceeding[column] += np.count_nonzero(distances >= observed[column] - 1e-9)
    return observed, (exceeding + 1) / (PERMUTATIONS + 1)


def _columns(values: FloatArray) -> range:
    return range(values.shape[1])


def _distance(
    labels: FloatArray, values: FloatArray, orders: np.ndarray, column: int
) -> FloatArray:
    """Return the largest difference of the cumulative distributions for each row of labels."""
    order = orders[:, column]
    ordered = values[order, column]
    ends = np.flatnonzero(np.append(np.diff(ordered) != 0, True))
    return np.asarray(np.abs(np.cumsum(labels[:, order], axis=1)[:, ends]).max(axis=1))
