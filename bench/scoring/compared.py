"""To how many digits an answer must agree with the truth."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from bench.records import Item
from bench.scoring.metrics import rounded
from bench.tasks import TASKS


def compared_as(item: Item) -> Callable[[Decimal], Decimal]:
    """What turns answer and truth into the values that must be equal: rounding to 15 digits.

    In the comparison tasks an answer is a copy: where rounding would make one of two different
    numbers of the question, it is compared as it stands.
    """
    if TASKS[item.task].metric == "log_smape" or not _collide(item.operands):
        return rounded
    return _as_it_stands


def _as_it_stands(value: Decimal) -> Decimal:
    return value


@lru_cache(1 << 16)
def _collide(operands: tuple[str, ...]) -> bool:
    """Whether rounding makes different numbers equal."""
    values = {Decimal(operand) for operand in operands}
    return len({rounded(value) for value in values}) < len(values)
