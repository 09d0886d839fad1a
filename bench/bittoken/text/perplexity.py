"""Perplexity of validation text (paper, "Fineweb" and "Fineweb text only")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.bittoken.data.packing import Samples
from bench.bittoken.encodings.base import Floats
from bench.bittoken.text.codec import number_tokens
from bench.bittoken.vocabulary import Vocabulary

Score = Callable[[Samples], Floats]
"""The natural log-probability of each token given those before it in its sample, shape (T,).

Of a number, that of its token, not of its value. What stands at the tokens that carry no loss
is not looked at."""


class Perplexity(NamedTuple):
    """exp of the mean negative log-probability; None where no token was predicted.

    text: over the tokens that are neither a number nor a piece of one.
    """

    all: float | None
    text: float | None
    all_tokens: int
    text_tokens: int


def perplexity(score: Score, windows: Iterable[Samples], vocabulary: Vocabulary) -> Perplexity:
    """ValueError where scores are no log-probabilities."""
    is_number = number_tokens(vocabulary)
    loss, tokens = np.zeros(2), np.zeros(2, np.int64)
    for samples in windows:
        predicted = _predicted(samples)
        scores = _checked(score(samples), predicted)
        text = predicted & ~is_number[samples.tokens]
        for place, chosen in enumerate((predicted, text)):
            loss[place] -= scores[chosen].sum()
            tokens[place] += np.count_nonzero(chosen)
    counts = [int(count) for count in tokens]
    of_all, of_text = (_exp_mean(float(x), n) for x, n in zip(loss, counts, strict=True))
    return Perplexity(of_all, of_text, *counts)


def _predicted(samples: Samples) -> NDArray[np.bool_]:
    """Which tokens are behind the question of their sample."""
    first = np.repeat(np.cumsum(samples.lengths) - samples.lengths, samples.lengths)
    behind: NDArray[np.bool_] = np.arange(len(samples.tokens)) - first >= np.repeat(
        samples.questions, samples.lengths
    )
    return behind


def _checked(scores: Floats, predicted: NDArray[np.bool_]) -> Floats:
    if scores.shape != predicted.shape:
        raise ValueError(f"{len(predicted)} tokens have scores of shape {scores.shape}")
    if not (scores[predicted] <= 0).all():
        raise ValueError("a score is positive or NaN: scores are log-probabilities, not losses")
    return scores.astype(np.float64)


def _exp_mean(loss: float, tokens: int) -> float | None:
    with np.errstate(over="ignore"):
        return float(np.exp(loss / tokens)) if tokens else None
