"""The sizes at which a scaled task is asked, and what is expected there: tokens and guesses."""

from __future__ import annotations

from collections.abc import Sequence

from numbench.horizon.items import ItemSequences
from numbench.tasks.base import Task

EVERY_SIZE_UP_TO, STEPS_PER_DOUBLING = 16, 8

CHARACTERS_PER_TOKEN = 3
"""A rough figure for prompts full of digits: no widely used tokenizer has more digits per token."""

ANSWER_OVERHEAD_TOKENS = 10
"""Tokens of `{"answer": …}` around the answer itself."""

_MEASURED_SIZES = 16, 64
"""The sizes whose questions are measured: a question grows linearly with its size."""


def task_sizes(task: Task, largest: int | None = None) -> tuple[int, ...]:
    """Return the sizes of a scaled task, increasing: all up to 16, then eight per doubling.

    largest: the largest size whose answer fits the model's token limit; None: no such limit.
    Raises ValueError if none is permitted.
    """
    axis = task.sizes
    assert axis is not None
    low, high = axis.minimum, axis.maximum
    high = high if largest is None else min(high, largest)
    steps = range(STEPS_PER_DOUBLING * max(high, 1).bit_length() + 1)
    rounded = {round(2 ** (step / STEPS_PER_DOUBLING)) for step in steps}
    sizes = rounded | set(range(1, EVERY_SIZE_UP_TO + 1))
    permitted = tuple(sorted(size for size in sizes if low <= size <= high))
    if not permitted:
        raise ValueError(f"task {task.name!r} has no size in {low} … {high}")
    return permitted


def answer_tokens(task: Task, sizes: Sequence[int]) -> tuple[float, ...]:
    """Return the fewest tokens that an answer takes at each size, in the requested format."""
    axis = task.sizes
    assert axis is not None
    return tuple(
        axis.answer_characters(size) / CHARACTERS_PER_TOKEN + ANSWER_OVERHEAD_TOKENS
        for size in sizes
    )


def prompt_tokens(
    task: Task, sizes: Sequence[int], items: ItemSequences, prefix_characters: int = 0
) -> tuple[float, ...]:
    """Return the estimated tokens of a question at each size.

    prefix_characters: of the messages before it.
    """
    short, long = (
        len(item.prompt)
        for size in _MEASURED_SIZES
        if (item := items.item(task.name, size, 0)) is not None
    )
    first, second = _MEASURED_SIZES
    slope = (long - short) / (second - first)
    return tuple(
        (prefix_characters + short + slope * (size - first)) / CHARACTERS_PER_TOKEN
        for size in sizes
    )


def size_text(size: float, smallest: int, largest: int) -> str:
    """Return a size as text; `≥ 4,096` or `< 1` if it is outside the sizes that can be asked."""
    if size >= largest:
        return f"≥ {largest:,}"
    if size < smallest:
        return f"< {smallest:,}"
    return f"{size:,.0f}" if size >= 99.95 else f"{size:.1f}"
