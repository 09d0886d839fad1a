"""The adaptive measurement of one task: which sizes to ask next, and when to stop.

A measurement goes in rounds. The sizes of a round depend on the answers of the rounds before it
and on nothing else: not on the order of the answers, nor on the limits. So a measurement that was
interrupted, or that continues with higher limits, asks what an uninterrupted one asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

import numpy as np

from numbench.horizon import CERTAINTY, Limits, StopReason
from numbench.horizon.psychometric import LOG2_HORIZONS, Floats, Posterior

SMALLEST_ROUND, ROUND_SHARE = 4, 4
"""A round has a quarter as many items as all rounds before it, and at least four."""

CURVE_EVERY = 4
"""Of every four items, one is chosen for the whole curve."""

MAX_REJECTIONS = 3
"""Questions above the largest answered size that may be rejected until they are asked no more."""


def round_size(completed: int) -> int:
    """Return the number of items of the round after `completed` items."""
    return max(SMALLEST_ROUND, completed // ROUND_SHARE)


def is_about_curve(position: int) -> bool:
    """Return whether the item at a position of a round, from 0, is chosen for the whole curve.

    The others are chosen for log h50 alone; without these, nothing shows the slope and the lapses,
    on which h90 and the fit check depend.
    """
    return position % CURVE_EVERY == CURVE_EVERY - 1


class AdaptiveDesign:
    """Chooses sizes by expected information per expected token.

    sizes: increasing. guess: the probability of a right guess by size. prompt_tokens,
    answer_tokens: expected tokens of a question and of its answer by size, before any answer;
    those of the answers are corrected by what was generated. completed: items that were answered
    or rejected.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        guess: Sequence[float],
        prompt_tokens: Sequence[float],
        answer_tokens: Sequence[float],
    ) -> None:
        self.posterior = Posterior(sizes, guess)
        self.completed = 0
        self._previous_deviation = np.inf
        self._largest_answered = 0
        self._rejected: list[int] = []
        self._exhausted: set[int] = set()
        self._smallest_rejected = np.inf
        self._prompt_tokens = np.asarray(prompt_tokens, np.float64)
        self._costs = TokenCosts(sizes, answer_tokens)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that may be asked."""
        return self.posterior.sizes

    @property
    def largest(self) -> int | None:
        """The largest size that the model does not reject; None: it rejects all."""
        available = [size for size in self.sizes if size < self._smallest_rejected]
        return max([*available, self._largest_answered], default=0) or None

    def next_round(self, has_item: Callable[[int, int], bool] = lambda *_: True) -> list[int]:
        """Return the sizes of the next round, in the order of their choice.

        Each is chosen as if those before it were answered in the proportions that are expected.
        Empty if no size has further items. has_item: whether a size has one more than the number
        that the round has.
        """
        chosen, spent = list[int](), set[int]()
        expected = self.posterior.copy()
        while len(chosen) < round_size(self.completed):
            information = expected.information(is_about_curve(len(chosen)))
            size = self._best_size(information, {*spent, *self._may_be_rejected(chosen)})
            if size is None:
                break
            if not has_item(size, chosen.count(size)):
                spent.add(size)
                continue
            chosen.append(size)
            expected.expect(size)
        return chosen

    def exhaust(self, size: int) -> None:
        """Choose a size no more: it has no further items."""
        self._exhausted.add(size)

    def begin_round(self) -> None:
        """Keep the precision before a round. Call it before the first outcome of the round."""
        self._previous_deviation = self.posterior.log2_horizon_deviation()

    def record(self, size: int, right: float, tokens: float | None = None) -> None:
        """Take an answered item into account.

        right: the share of its samples that are right. tokens: those generated, if they are known.
        """
        self.completed += 1
        self._largest_answered = max(size, self._largest_answered)
        self.posterior.update(size, right, 1 - right)
        if tokens is not None:
            self._costs.add(size, tokens)

    def reject(self, size: int) -> None:
        """Take an item into account that can never be answered, such as one that is too long."""
        self.completed += 1
        self._rejected.append(size)
        if len(beyond := self._rejected_beyond) >= MAX_REJECTIONS:
            self._smallest_rejected = min(self._smallest_rejected, *beyond)
            self._exhausted.update(other for other in self.sizes if other >= min(beyond))

    def stop_reason(self, limits: Limits) -> StopReason | None:
        """Return why the measurement is complete; None if it is not.

        No question is between a size and the next integer, so no further answer says where in
        between h50 is.
        """
        weights = self.posterior.horizon_weights()
        # The probability that h50 is above a size.
        beyond = {n: float(weights[np.log2(n) < LOG2_HORIZONS].sum()) for n in self.sizes}
        if beyond[self.sizes[-1]] >= CERTAINTY:
            return "above"
        if beyond[self.sizes[0]] <= 1 - CERTAINTY:
            return "below"
        is_between_neighbors = any(
            high == low + 1 and beyond[low] - beyond[high] >= CERTAINTY
            for low, high in pairwise(self.sizes)
        )
        deviation = max(self._previous_deviation, self.posterior.log2_horizon_deviation())
        if deviation <= limits.precision or is_between_neighbors:
            return "precision"
        if self.completed >= limits.max_items:
            return "items"
        available = [size for size in self.sizes if size not in self._exhausted]
        return None if available and beyond[available[-1]] < CERTAINTY else "exhausted"

    def _may_be_rejected(self, chosen: Sequence[int]) -> Sequence[int]:
        """Return the sizes to exclude for the rest of a round, so that not all of it fails.

        Once a question above the largest answered size was rejected, a round has few of them.
        """
        beyond = [size for size in chosen if size > self._largest_answered]
        if not self._rejected_beyond or len(beyond) < MAX_REJECTIONS:
            return ()
        return [size for size in self.sizes if size > self._largest_answered]

    @property
    def _rejected_beyond(self) -> list[int]:
        """The sizes above the largest answered one of questions that were rejected."""
        return [size for size in self._rejected if size > self._largest_answered]

    def _best_size(self, information: Floats, excluded: Collection[int]) -> int | None:
        """Return the permitted size with the most information per token; None: there is none."""
        value = information / (self._prompt_tokens + self._costs.expected())
        for size in {*self._exhausted, *excluded}:
            value[self.sizes.index(size)] = -1
        best = int(np.argmax(value))
        return None if value[best] < 0 else self.sizes[best]


class TokenCosts:
    """Expected generated tokens by size: a first guess, times a power law fitted to the answers.

    The logarithm of used over guessed tokens is a + b · ln(size / smallest size), by ridge
    regression: with few answers, a and b stay near 0.
    """

    _RIDGE = 0.5

    def __init__(self, sizes: Sequence[int], guessed: Sequence[float]) -> None:
        self._sizes = tuple(sizes)
        self._guessed = np.asarray(guessed, np.float64)
        self._features = np.column_stack([np.ones(len(sizes)), np.log(sizes) - np.log(sizes[0])])
        self._gram = self._RIDGE * np.eye(2)
        self._moment = np.zeros(2)

    def add(self, size: int, tokens: float) -> None:
        """Take the tokens of an answer into account."""
        index = self._sizes.index(size)
        features = self._features[index]
        self._gram += np.outer(features, features)
        self._moment += features * np.log(max(tokens, 1) / self._guessed[index])

    def expected(self) -> Floats:
        """Return the expected tokens at each size."""
        correction = self._features @ np.linalg.solve(self._gram, self._moment)
        return np.asarray(self._guessed * np.exp(correction))
