"""Teacher-forced scores of a network on new questions during training.

Every token is predicted from the tokens of the correct answer before it, and numbers are compared
in float64: an estimate that controls the training. The reported scores come from `numbench run`.
`_log_smape` and `_equal_to_15_digits` repeat the rules of `numbench.scoring` for float64 values,
which this layer cannot import; a test checks that they agree.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from bittoken.encodings.base import FloatArray
from bittoken.training.losses import Predictions, Targets
from bittoken.training.recipe import TEXT
from bittoken.vocabulary import MINUS, NUM, POINT, Vocabulary
from numbench.tasks import TASKS

_DIGITS = 15


def teacher_forced_scores(
    predictions: Predictions, targets: Targets, tasks: list[str], vocabulary: Vocabulary
) -> tuple[FloatArray, FloatArray]:
    """Return the headline score of each sample (log-sMAPE or exact match), and its exact match.

    tasks: the task of each sample. An exact match has all tokens right and all numbers equal to 15
    significant digits. The score of text is the share of tokens that are right.
    """
    predicted = predictions.logits.argmax(-1).cpu().numpy()
    expected, sample_of = targets.tokens.cpu().numpy(), targets.sample.cpu().numpy()
    values, truths = _values(predictions, targets, vocabulary)
    is_number = expected == vocabulary.ids[NUM]
    correct = (predicted == expected) & (~is_number | _equal_to_15_digits(values, truths))
    exact = np.ones(len(tasks))
    np.minimum.at(exact, sample_of, correct.astype(np.float64))
    score = exact.copy()
    starts = np.searchsorted(sample_of, np.arange(len(tasks) + 1))
    for sample, task in enumerate(tasks):
        rows = slice(starts[sample], starts[sample + 1])
        if task == TEXT:
            score[sample] = correct[rows].mean()
        elif TASKS[task].metric == "log_smape" and not exact[sample]:
            answer = _answer(
                predicted[rows], expected[rows], values[rows], truths[rows], vocabulary
            )
            score[sample] = _log_smape(*answer)
    return score, exact


def _values(
    predictions: Predictions, targets: Targets, vocabulary: Vocabulary
) -> tuple[FloatArray, FloatArray]:
    """Return the predicted and the expected number at every target, whatever its token."""
    if vocabulary.encoding is None or predictions.outputs is None:
        unknown = np.full(len(targets.tokens), np.nan)
        return unknown, unknown
    codes = vocabulary.encoding.torch_predict_codes(predictions.outputs).cpu().numpy()
    decode = vocabulary.encoding.decode
    return decode(codes), decode(np.ascontiguousarray(targets.codes.cpu().numpy()))


def _answer(
    predicted: np.ndarray,
    expected: np.ndarray,
    values: FloatArray,
    truths: FloatArray,
    vocabulary: Vocabulary,
) -> tuple[float, float]:
    """Return the predicted number of an answer, NaN if it is not a number, and the expected one."""
    if vocabulary.encoding is None:
        return _parse_spelled(predicted, vocabulary), _parse_spelled(expected, vocabulary)
    # The tokens of an answer are: optional minus, number, eos.
    signs = np.where(expected == vocabulary.ids[MINUS], -1.0, 1.0)
    truth = float(truths[-2] * signs[0])
    if len(predicted) < 2 or predicted[-2] != vocabulary.ids[NUM]:
        return float("nan"), truth
    sign = -1.0 if len(predicted) > 2 and predicted[0] == vocabulary.ids[MINUS] else 1.0
    return float(values[-2]) * sign, truth


def _parse_spelled(tokens: np.ndarray, vocabulary: Vocabulary) -> float:
    text = "".join(vocabulary.tokens[token] for token in tokens[:-1])
    unsigned = text.lstrip(MINUS)
    digits = unsigned.replace(POINT, "", 1)
    is_number = digits.isascii() and digits.isdigit() and len(text) - len(unsigned) < 2
    return float(text) if is_number else float("nan")


def _equal_to_15_digits(values: FloatArray, truths: FloatArray) -> NDArray[np.bool_]:
    """Return which values are equal when rounded to 15 significant digits."""
    equal: NDArray[np.bool_] = values == truths
    with np.errstate(invalid="ignore"):
        near = np.flatnonzero(~equal & (np.abs(values - truths) <= 1e-14 * np.abs(truths)))
    for index in near:
        equal[index] = f"{values[index]:.{_DIGITS - 1}e}" == f"{truths[index]:.{_DIGITS - 1}e}"
    return equal


def _log_smape(value: float, truth: float) -> float:
    """Return min(1, lg(sMAPE) / −15), at least 0; 0 if `value` is not a finite number."""
    if not np.isfinite(value):
        return 0.0
    # Halved, so that the sum stays finite.
    error, size = abs(value / 2 - truth / 2), abs(value / 2) + abs(truth / 2)
    if error == 0:
        return 1.0
    return float(min(1.0, max(0.0, np.log10(error / size + 1e-100) / -_DIGITS)))


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor as a float64 array on the CPU."""
    array: np.ndarray = tensor.detach().double().cpu().numpy()
    return array
