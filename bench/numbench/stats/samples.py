"""Statistics of repeated samples: several answers of a model to each item.

Values are matrices of shape (items, samples), NaN for a sample that does not count. The
samples of one item are not independent of each other, so the item is the unit of every error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from numbench.stats.design import Matrix


class VoteCounts(NamedTuple):
    """The responses to one item, by their answer.

    correct: responses with the correct answer. others: responses with each of the other answers.
    blank: responses without an answer, which do not vote.
    """

    correct: int
    others: tuple[int, ...] = ()
    blank: int = 0

    @property
    def responses(self) -> int:
        """The number of responses."""
        return self.correct + sum(self.others) + self.blank


def pass_at_k(correct: Matrix, k: int) -> float | None:
    """Return the probability that at least one of `k` samples of an item is correct, unbiased.

    correct: 1 or 0. The mean over the items with at least `k` samples; None if there is none. Of
    the n samples of an item c are correct, and 1 - C(n - c, k) / C(n, k) of all choices of k
    samples contain one of these.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code (2021), section 2.1.
    """
    counts = np.count_nonzero(~np.isnan(correct), axis=1).tolist()
    correct_counts = np.nansum(correct, axis=1).astype(int).tolist()
    chances = [
        1 - math.comb(n - c, k) / math.comb(n, k)
        for n, c in zip(counts, correct_counts, strict=True)
        if n >= k
    ]
    return math.fsum(chances) / len(chances) if chances else None


def majority_accuracy(votes: Sequence[VoteCounts], k: int) -> float | None:
    """Return the expected accuracy of the most frequent answer among `k` samples of an item.

    If several answers are equally frequent, one of them is chosen at random. The mean over the
    items with at least `k` responses, and over all choices of `k` of them; None if there is none.
    """
    chances = [_vote_curve(item)[k - 1] for item in votes if item.responses >= k]
    return math.fsum(chances) / len(chances) if chances else None


@lru_cache(1 << 14)
def _vote_curve(votes: VoteCounts) -> tuple[float, ...]:
    """Return the expected accuracy of a vote of k of the responses, for k = 1 … all of them.

    The correct answer wins with t votes if no other has more, and with probability 1 / (1 + r) if
    r others have as many. Counts the choices of k responses by t and r.
    """
    total = votes.responses
    won = [0.0] * (total + 1)
    for t in range(1, votes.correct + 1):
        choices = _choices_of_others(votes.others, t)
        for (drawn, ties), count in choices.items():
            weight = math.comb(votes.correct, t) * count / (1 + ties)
            for blank in range(votes.blank + 1):
                won[t + drawn + blank] += weight * math.comb(votes.blank, blank)
    return tuple(won[k] / math.comb(total, k) for k in range(1, total + 1))


def _choices_of_others(others: Sequence[int], most: int) -> dict[tuple[int, int], int]:
    """Count the choices of responses with the other answers, none with more than `most` votes.

    Returns (responses chosen, answers with exactly `most` votes) → number of choices.
    """
    choices = {(0, 0): 1}
    for count in others:
        extended: dict[tuple[int, int], int] = {}
        for (drawn, ties), ways in choices.items():
            for chosen in range(min(count, most) + 1):
                key = drawn + chosen, ties + (chosen == most)
                extended[key] = extended.get(key, 0) + ways * math.comb(count, chosen)
        choices = extended
    return choices
