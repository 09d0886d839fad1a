"""Replays: the adaptive procedure sees recorded responses, one question at a time.

It chooses among the sizes that still have a question that it has not seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.horizon_study.responses import SIZES
from numbench.horizon.adaptive import AdaptiveDesign
from numbench.horizon.estimate import SizeOutcome
from numbench.horizon.psychometric import Estimate
from numbench.horizon.stopping import Limits, StopReason

REPLAYS = 20
"""Replays of a configuration and task, each with the questions in another order."""

PROMPT_TOKENS = 150.0
"""Of the study's questions with their system prompt; they hardly depend on the digits."""


class Replay(NamedTuple):
    """What the adaptive procedure says after `items` questions, which took `tokens` tokens."""

    h50: Estimate
    items: int
    tokens: float
    stop: StopReason


def replays(outcomes: Sequence[SizeOutcome], count: int = REPLAYS) -> list[Replay]:
    """Return replays, each of which takes the questions of every size in a random order."""
    rng = np.random.default_rng(1)
    return [replay([outcomes[i] for i in rng.permutation(len(outcomes))]) for _ in range(count)]


def replay(outcomes: Sequence[SizeOutcome]) -> Replay:
    """Measure with recorded outcomes; those of a size are taken in their order."""
    unseen: defaultdict[int, list[SizeOutcome]] = defaultdict(list)
    for outcome in reversed(outcomes):
        unseen[outcome.size].append(outcome)
    limits = Limits(max_items=len(outcomes))
    design = AdaptiveDesign(
        SIZES, [0.0] * len(SIZES), [PROMPT_TOKENS] * len(SIZES), [20.0] * len(SIZES)
    )
    for size in SIZES:
        if not unseen[size]:
            design.exhaust(size)
    tokens = 0.0
    while (stop := design.stop_reason(limits)) is None:
        design.begin_round()
        for size in design.next_round()[: limits.max_items - design.completed]:
            # A round may ask a size more often than there are questions.
            if unseen[size]:
                outcome = unseen[size].pop()
                design.record(size, outcome.right, outcome.tokens)
                tokens += PROMPT_TOKENS + (outcome.tokens or 0)
            if not unseen[size]:
                design.exhaust(size)
    return Replay(design.horizon(), design.completed, tokens, stop)


def includes(replayed: Estimate, size: float) -> bool:
    """Return whether an interval contains a size; beyond the largest size, all sizes are one."""
    largest = SIZES[-1]
    low, high, value = (min(x, largest) for x in (replayed.low, replayed.high, size))
    return low <= value <= high
