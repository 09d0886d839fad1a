"""Seeded random draws and exact sums: bit-identical results."""

from __future__ import annotations

import numpy as np
import pytest

from numbench.stats.bootstrap import RESAMPLES
from numbench.stats.design import Column
from numbench.stats.resampling import bootstrap_weights, coin_flips, round_for_exact_sums


@pytest.fixture(scope="module")
def values() -> Column:
    drawn: Column = np.random.default_rng(1).exponential(size=(80, 12))
    return drawn


def test_rounded_values_have_exact_sums_and_a_tiny_error(values: Column) -> None:
    rounded = round_for_exact_sums(values)
    assert np.abs(rounded - values).max() < 1e-11 * values.max()
    forward, backward = np.add.accumulate(rounded)[-1], np.add.accumulate(rounded[::-1])[-1]
    assert forward.tolist() == backward.tolist()
    assert round_for_exact_sums(np.zeros((3, 1))).tolist() == [[0.0]] * 3


def test_draws_are_reproducible() -> None:
    (weights,) = bootstrap_weights(5, 3, "addition")
    assert weights.tolist() == [[0, 1, 1, 1, 2], [1, 2, 1, 0, 1], [2, 2, 1, 0, 0]]
    (flips,) = coin_flips(5, 3, "addition")
    assert flips.tolist() == [[1, 0, 0, 1, 0], [0, 1, 0, 1, 1], [1, 0, 1, 1, 0]]


def test_draws_depend_on_their_stream_and_are_fair() -> None:
    (a,), (b,) = bootstrap_weights(9, 50, "a"), bootstrap_weights(9, 50, "b")
    assert a.tolist() != b.tolist()
    assert a.sum(axis=1).tolist() == [9.0] * 50
    flips = np.concatenate(list(coin_flips(70, RESAMPLES)))
    assert set(np.unique(flips)) == {0.0, 1.0}
    assert np.abs(flips.mean(axis=0) - 0.5).max() < 0.025


def test_flips_do_not_depend_on_the_number_of_items() -> None:
    (some,), (more,) = coin_flips(60, 30, "a"), coin_flips(200, 30, "a")
    assert more[:, :60].tolist() == some.tolist()
    assert more[:, 64:124].tolist() != some.tolist()


def test_draws_do_not_depend_on_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    (weights,), (flips,) = bootstrap_weights(70, 40), coin_flips(70, 40)
    monkeypatch.setattr("numbench.stats.resampling._MAX_DRAWS_PER_CHUNK", 500)
    assert np.concatenate(list(bootstrap_weights(70, 40))).tolist() == weights.tolist()
    assert np.concatenate(list(coin_flips(70, 40))).tolist() == flips.tolist()
