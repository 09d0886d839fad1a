"""Simulated models with known probabilities of a right answer."""

from __future__ import annotations

from itertools import islice

import numpy as np

from numbench.calibration.features import item_features
from numbench.calibration.response_model import FloatArray
from numbench.records import Item
from numbench.tasks.shards import Shard, generate_items


def items(task: str, count: int, seed: int = 1, max_digits: int = 17) -> list[Item]:
    """Return the first items of a shard."""
    return list(islice(generate_items(Shard(task, seed, max_digits=max_digits)), count))


def feature(rows: list[Item], name: str) -> FloatArray:
    """Return one feature of each item."""
    return np.array([item_features(item)[name] for item in rows])


def smooth(rows: list[Item]) -> FloatArray:
    """A model whose errors grow with the digits of both operands, and with small numbers."""
    logits = (
        6.0
        - 0.35 * feature(rows, "digits of the longer operand")
        - 0.25 * feature(rows, "digits of the shorter operand")
        + 0.04 * feature(rows, "magnitude of operand 1")
    )
    return 1 / (1 + np.exp(-logits))


def independent_digits(rows: list[Item]) -> FloatArray:
    """A model each of whose digits fails alone: no logistic curve in the features."""
    return np.asarray(0.98 ** feature(rows, "digit products") * 0.97)


def abrupt(rows: list[Item]) -> FloatArray:
    """A model that collapses beyond nine digits of the shorter operand."""
    return np.where(feature(rows, "digits of the shorter operand") <= 9, 0.85, 0.1)


MODELS = {"smooth": smooth, "independent digits": independent_digits, "abrupt": abrupt}


def answers(probabilities: FloatArray, seed: int) -> FloatArray:
    """Return right (1) and wrong (0) answers with these probabilities."""
    return (np.random.default_rng(seed).random(len(probabilities)) < probabilities).astype(float)
