"""How well a network does on fresh questions, while it trains.

Answers are judged with the right answer's own tokens before them, in float64: an estimate that
steers the training. Scores proper come from a run (`numbench run`), item by item.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from bench.bittoken.training.losses import Predictions, Targets
from bench.bittoken.training.recipe import TEXT
from bench.bittoken.vocabulary import MINUS, NUM, POINT, Vocabulary
from bench.tasks import TASKS

Floats = NDArray[np.float64]
_DIGITS = 15


def scores(
    said: Predictions, targets: Targets, tasks: list[str], vocabulary: Vocabulary
) -> tuple[Floats, Floats]:
    """log-sMAPE or exact match of each sample, as its task's headline has it; and exact match.

    tasks: the task of each sample. An exact match has the right tokens and numbers, to 15 digits.
    Text counts the share of its tokens that are right.
    """
    chosen = said.logits.argmax(-1).cpu().numpy()
    wanted, owner = targets.tokens.cpu().numpy(), targets.sample.cpu().numpy()
    right = chosen == wanted
    values, truths = _values(said, targets, vocabulary)
    number = wanted == vocabulary.ids[NUM]
    right &= ~number | _same(values, truths)
    exact = np.ones(len(tasks))
    np.minimum.at(exact, owner, right.astype(np.float64))
    score = exact.copy()
    starts = np.searchsorted(owner, np.arange(len(tasks) + 1))
    for sample, task in enumerate(tasks):
        if task == TEXT:
            score[sample] = right[starts[sample] : starts[sample + 1]].mean()
        elif TASKS[task].metric == "log_smape" and not exact[sample]:
            rows = slice(starts[sample], starts[sample + 1])
            pair = _answer(chosen[rows], wanted[rows], values[rows], truths[rows], vocabulary)
            score[sample] = _log_smape(*pair)
    return score, exact


def _values(said: Predictions, targets: Targets, vocabulary: Vocabulary) -> tuple[Floats, Floats]:
    """The number that each place says and the one it should, whatever its token."""
    if vocabulary.encoding is None or said.outputs is None:
        nothing = np.full(len(targets.tokens), np.nan)
        return nothing, nothing
    codes = vocabulary.encoding.torch_decide(said.outputs).cpu().numpy()
    read = vocabulary.encoding.value
    return read(codes), read(np.ascontiguousarray(targets.codes.cpu().numpy()))


def _answer(
    chosen: np.ndarray, wanted: np.ndarray, values: Floats, truths: Floats, vocabulary: Vocabulary
) -> tuple[float, float]:
    """The number that an answer says, NaN where it is none, and the right one."""
    if vocabulary.encoding is None:
        return _spelled(chosen, vocabulary), _spelled(wanted, vocabulary)
    # An answer is [-] number eos.
    signs = np.where(wanted == vocabulary.ids[MINUS], -1.0, 1.0)
    truth = float(truths[-2] * signs[0])
    if len(chosen) < 2 or chosen[-2] != vocabulary.ids[NUM]:
        return float("nan"), truth
    sign = -1.0 if len(chosen) > 2 and chosen[0] == vocabulary.ids[MINUS] else 1.0
    return float(values[-2]) * sign, truth


def _spelled(tokens: np.ndarray, vocabulary: Vocabulary) -> float:
    text = "".join(vocabulary.tokens[token] for token in tokens[:-1])
    plain = text.lstrip(MINUS)
    digits = plain.replace(POINT, "", 1)
    well = digits.isascii() and digits.isdigit() and len(text) - len(plain) < 2
    return float(text) if well else float("nan")


def _same(values: Floats, truths: Floats) -> NDArray[np.bool_]:
    """Equal to 15 significant digits."""
    equal: NDArray[np.bool_] = values == truths
    with np.errstate(invalid="ignore"):
        near = np.flatnonzero(~equal & (np.abs(values - truths) <= 1e-14 * np.abs(truths)))
    for place in near:
        equal[place] = f"{values[place]:.{_DIGITS - 1}e}" == f"{truths[place]:.{_DIGITS - 1}e}"
    return equal


def _log_smape(value: float, truth: float) -> float:
    """min(1, lg(sMAPE) / −15), never below 0; 0 where there is no number."""
    if not np.isfinite(value):
        return 0.0
    # Both scaled down, so that their sum stays finite.
    gap, size = abs(value / 2 - truth / 2), abs(value / 2) + abs(truth / 2)
    if gap == 0:
        return 1.0
    return float(min(1.0, max(0.0, np.log10(gap / size + 1e-100) / -_DIGITS)))


def gathered(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's numbers on this side, as float64."""
    array: np.ndarray = tensor.detach().double().cpu().numpy()
    return array
