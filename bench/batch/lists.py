"""Sampling of list questions in batches: twins of `bench.tasks.lists` and its users."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from bench.batch.fixed import POWERS, Flags, Ints, Numbers
from bench.batch.questions import Questions
from bench.batch.words import Words
from bench.tasks import TASKS, comparison, multi_step, numbers
from bench.tasks.lists import MAX_LENGTH


class Lists(NamedTuple):
    """units of shape (rows, 5), 0 beyond `length`; `radius` is 10^spread in units."""

    units: Ints
    length: Ints
    grid: Ints
    radius: Ints
    params: dict[str, Ints]
    valid: Flags


def ordering(task: str, words: Words, max_digits: int) -> Questions:
    """minmax and sorting."""
    lists = _sample(words, max_digits, comparison.REACH)
    operator = words.below(len(TASKS[task].operators))
    return _questions(task, lists, lists.units, lists.length, operator, lists.params, lists.valid)


def moments(task: str, words: Words, max_digits: int) -> Questions:
    """mean and std, before the check that both are in range."""
    lists = _sample(words, max_digits, multi_step.REACH)
    operator = np.zeros_like(lists.length)
    return _questions(task, lists, lists.units, lists.length, operator, lists.params, lists.valid)


def interval(words: Words, max_digits: int) -> Questions:
    """Boundaries in ascending order, and a reference among them."""
    lists = _sample(words, max_digits, comparison.REACH)
    length, rows = lists.length, np.arange(len(lists.length))
    bounds = _separated(lists.units, length)
    position = words.between(0, length)
    step = np.maximum(1, lists.radius // length)
    inner = (position > 0) & (position < length)
    low = bounds[rows, np.where(inner, position - 1, 0)]
    high = bounds[rows, np.where(inner, position, 0)]
    drawn = low + words.below(np.where(inner, high - low, 1))
    last = bounds[rows, length - 1]
    ends = np.where(position == 0, bounds[:, 0] - step, last + step)
    reference = np.where(inner, drawn, ends)
    units = np.column_stack([reference, np.where(_within(length), bounds, 0)])
    valid = lists.valid & _fit(units, lists, length + 1)
    params = lists.params | {"position": position}
    operator = np.zeros_like(length)
    return _questions("interval", lists, units, length + 1, operator, params, valid)


SAMPLERS: dict[str, Callable[[Words, int], Questions]] = {
    "minmax": partial(ordering, "minmax"),
    "interval": interval,
    "sorting": partial(ordering, "sorting"),
    "mean": partial(moments, "mean"),
    "std": partial(moments, "std"),
}


def _sample(words: Words, max_digits: int, reach: int) -> Lists:
    length = words.between(2, MAX_LENGTH)
    x = words.between(numbers.LOWEST_EXPONENT, numbers.HIGHEST_EXPONENT)
    s = words.between(np.minimum(13, x - min(13, max_digits - 2)), np.minimum(x + reach, 13))
    digits = words.between(np.maximum(2, x - s + 2), max_digits)
    grid = np.maximum(x, s) - digits + 1
    reached = np.maximum(x, grid)
    smallest = length * POWERS[reached - grid]
    total = words.between(smallest, 10 * smallest - 1)
    radius = POWERS[s - grid]
    units = _around(words, length, total, radius)
    params = {"length": length, "exponent": x, "spread": s, "digits": digits}
    lists = Lists(units, length, grid, radius, params, np.empty(0, np.bool_))
    differ = (np.where(_within(length), units, units[:, :1]) != units[:, :1]).any(axis=1)
    return lists._replace(valid=differ & _fit(units, lists, length))


def _around(words: Words, length: Ints, total: Ints, radius: Ints) -> Ints:
    half = radius * length // (2 * (length - 1))
    offsets = np.column_stack([words.between(-half, half) for _ in range(MAX_LENGTH)])
    present = _within(length)
    offsets[~present] = 0
    left = total - offsets.sum(axis=1)
    shift = left // length
    rest = left - shift * length
    units = offsets + shift[:, None] + (np.arange(MAX_LENGTH) < rest[:, None])
    return np.where(present, units, 0)


def _separated(units: Ints, length: Ints) -> Ints:
    """Rows in ascending order, each unit pushed up to one above the last where they coincide."""
    bounds = np.sort(np.where(_within(length), units, np.iinfo(np.int64).max), axis=1)
    for column in range(1, MAX_LENGTH):
        present = column < length
        lifted = np.maximum(bounds[:, column], bounds[:, column - 1] + 1)
        bounds[:, column] = np.where(present, lifted, bounds[:, column])
    return bounds


def _fit(units: Ints, lists: Lists, count: Ints) -> Flags:
    size = np.abs(units)
    smallest = POWERS[np.maximum(0, numbers.LOWEST_EXPONENT - lists.grid)][:, None]
    fits = (size < POWERS[lists.params["digits"]][:, None]) & ((size >= smallest) | (size == 0))
    absent = np.arange(units.shape[1]) >= count[:, None]
    flags: Flags = (fits | absent).all(axis=1)
    return flags


def _within(length: Ints) -> Flags:
    flags: Flags = np.arange(MAX_LENGTH) < length[:, None]
    return flags


def _questions(
    task: str,
    lists: Lists,
    units: Ints,
    length: Ints,
    operator: Ints,
    params: dict[str, Ints],
    valid: Flags,
) -> Questions:
    grid = np.broadcast_to(lists.grid[:, None], units.shape)
    return Questions(task, Numbers(units, grid), length, operator, params, valid)
