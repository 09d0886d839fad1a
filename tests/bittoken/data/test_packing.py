"""Ragged arrays behave like lists of lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bittoken.data.packing import RaggedArray, concatenate_rows, row_sums

ROWS = st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=8)


def ragged(rows: list[list[int]]) -> RaggedArray:
    flat = np.array([value for row in rows for value in row], np.int64)
    return RaggedArray.from_lengths(flat, np.array([len(row) for row in rows], np.int64))


def to_lists(rows: RaggedArray) -> list[list[int]]:
    return [
        rows.values[start : start + length].tolist()
        for start, length in zip(rows.starts, rows.lengths, strict=True)
    ]


@given(ROWS, st.data())
def test_take_returns_the_selected_rows(rows: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    taken = ragged(rows).take(np.array(chosen, np.int64))
    assert to_lists(taken) == [rows[row] for row in chosen]
    assert taken.values.tolist() == [value for row in chosen for value in rows[row]]


@given(ROWS, ROWS, st.data())
def test_concatenated_rows_keep_their_order(
    first: list[list[int]], second: list[list[int]], data: st.DataObject
) -> None:
    both = concatenate_rows(ragged(first), ragged(second))
    assert to_lists(both) == first + second
    order = data.draw(st.permutations(range(len(first) + len(second))))
    assert to_lists(both.take(np.array(order))) == [(first + second)[row] for row in order]


@given(st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), min_size=1))
def test_row_sums(rows: list[list[int]]) -> None:
    flat = ragged(rows)
    assert row_sums(flat.values, flat.lengths).tolist() == [sum(row) for row in rows]
