"""How the items of a task were drawn: strata of difficulty, and items that tasks share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numbench.dataset.settings import strata_share_per_item
from numbench.dataset.store import Dataset
from numbench.records import Item
from numbench.stats.design import Design


def sampling_design(dataset: Dataset, items: Sequence[Item]) -> Design | None:
    """Return the design of items of one task of a dataset; None if they are independent."""
    share = strata_share_per_item(dataset.manifest)
    if not share:
        return None
    difficulties = np.array([item.difficulty.base10 for item in items], dtype=np.float64)
    # Items of the same difficulty are in the random order of the dataset.
    return Design(np.argsort(difficulties, kind="stable"), share)


def shared_operands(items: Sequence[Item]) -> list[tuple[str, ...]]:
    """Return the key by which items of different tasks are recognised as drawn together."""
    return [item.operands for item in items]
