"""Dispersion under a sampling design: definitions, limits and a plain loop."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.stats.design import (
    Design,
    Stratum,
    drawn_together,
    residual_squares,
)

VALUES = st.lists(st.floats(-1, 1), min_size=2, max_size=30)


@given(VALUES)
def test_complete_sample_has_half_the_squared_successive_differences(
    values: list[float],
) -> None:
    order = np.random.default_rng(len(values)).permutation(len(values))
    ranked = [values[index] for index in order]
    expected = sum((b - a) ** 2 for a, b in pairwise(ranked)) / 2
    stratum = Stratum("", np.array(values)[:, None], Design(order, 1 / len(values)))
    assert residual_squares(stratum)[0] == pytest.approx(expected, abs=1e-12)


def test_part_of_a_sample_is_interpolated() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((40, 2))
    values[10:, 1] = np.nan
    design = Design(np.arange(40), 1 / 40)
    _, part = residual_squares(Stratum("", values, design))
    rest = values[:10, 1]
    neighbours = np.sum(np.diff(rest) ** 2) / 2
    independent = np.sum((rest - rest.mean()) ** 2)
    assert part == pytest.approx(0.25 * neighbours + 0.75 * independent)


def test_pairs_are_items_with_the_same_unique_key() -> None:
    values = np.zeros((4, 1))
    first = Stratum("a", values, None, ["p", "q", "r", "r"])
    second = Stratum("b", values, None, ["x", "r", "q", "p"])
    none, ((earlier, here, there),), others = drawn_together([first, second, Stratum("c", values)])
    assert (earlier, here.tolist(), there.tolist()) == (0, [2, 3], [1, 0])
    assert none == others == []
