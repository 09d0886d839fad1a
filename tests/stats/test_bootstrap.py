"""The stratified bootstrap: a plain loop, simulation and bit-identical results."""

from __future__ import annotations

import random

import numpy as np
import pytest

from numbench.stats.bootstrap import RESAMPLES, MeanIntervals, bootstrap
from numbench.stats.resampling import (
    Column,
    Stratum,
    bootstrap_weights,
    coin_flips,
    round_for_exact_sums,
)


@pytest.fixture(scope="module")
def values() -> Column:
    drawn: Column = np.random.default_rng(1).exponential(size=(80, 12))
    return drawn


def _as_lists(intervals: MeanIntervals) -> list[list[float]]:
    return [column.tolist() for column in intervals]


def test_mean_of_strata_agrees_with_a_plain_loop() -> None:
    rng = random.Random(2)
    strata = [[rng.expovariate(1) for _ in range(30)], [rng.expovariate(0.2) for _ in range(50)]]
    means = sorted(
        sum(sum(rng.choices(items, k=len(items))) / len(items) for items in strata) / 2
        for _ in range(20_000)
    )
    overall = bootstrap(
        [Stratum(name, np.array([items]).T) for name, items in zip("ab", strata, strict=True)]
    ).overall
    spread = means[-500] - means[500]
    assert overall.low[0] == pytest.approx(means[500], abs=0.04 * spread)
    assert overall.high[0] == pytest.approx(means[-500], abs=0.04 * spread)
    assert overall.mean[0] == pytest.approx(sum(sum(items) / len(items) for items in strata) / 2)


def test_strata_are_drawn_independently() -> None:
    # With shared draws, the interval of two equal strata would be as wide as that of one.
    column = np.tile([0.0, 1.0], 200)[:, None]
    result = bootstrap([Stratum("a", column), Stratum("b", column)])
    width = float(result.strata[0].high[0] - result.strata[0].low[0])
    overall_width = float(result.overall.high[0] - result.overall.low[0])
    assert overall_width == pytest.approx(width / 2**0.5, rel=0.05)


def test_bounds_are_bit_identical_for_any_order_and_selection_of_columns(values: Column) -> None:
    strata = [Stratum("a", values), Stratum("b", values[::-1])]
    results = [
        bootstrap(strata),
        bootstrap([Stratum(s.name, s.values[:, ::-1]) for s in strata]),
        bootstrap([Stratum(s.name, s.values[:, 3:4]) for s in strata]),
    ]
    all_intervals = ([*result.strata, result.overall] for result in results)
    for forward, backward, single in zip(*all_intervals, strict=True):
        assert _as_lists(forward) == [column[::-1] for column in _as_lists(backward)]
        assert _as_lists(single) == [column[3:4] for column in _as_lists(forward)]


def test_all_batches_of_columns_have_their_own_bounds() -> None:
    drawn = np.random.default_rng(14).exponential(size=(20, 300))
    result = bootstrap([Stratum("a", drawn), Stratum("b", drawn)])
    last = bootstrap([Stratum("a", drawn[:, 299:]), Stratum("b", drawn[:, 299:])])
    for whole, single in zip(
        [*result.strata, result.overall], [*last.strata, last.overall], strict=True
    ):
        assert all(column.shape == (300,) for column in whole)
        assert [column[299:] for column in _as_lists(whole)] == _as_lists(single)


def test_few_items_are_drawn_without_the_gaps_between_them(values: Column) -> None:
    few = values[:40]
    gaps = np.insert(few, [0, 5, 40], np.nan, axis=0)
    gaps[:, 1] = np.nan
    expected, result = bootstrap([Stratum("a", few)]), bootstrap([Stratum("a", gaps)])
    for a, b in zip(_as_lists(expected.strata[0]), _as_lists(result.strata[0]), strict=True):
        assert np.isnan(b[1])
        assert a[:1] + a[2:] == pytest.approx(b[:1] + b[2:], rel=1e-12)


def test_many_items_with_gaps_have_the_interval_of_those_that_count(values: Column) -> None:
    gaps = np.insert(values, [0, 3, 5, 5, 9, 40], np.nan, axis=0)
    (expected,) = bootstrap([Stratum("a", values)]).strata
    (result,) = bootstrap([Stratum("a", gaps)]).strata
    assert result.mean == pytest.approx(expected.mean, rel=1e-12)
    assert result.high - result.low == pytest.approx(expected.high - expected.low, rel=0.06)
    assert result.low == pytest.approx(expected.low, rel=0.03)


def test_items_after_the_last_that_counts_do_not_change_the_draws(values: Column) -> None:
    gaps = np.insert(values, [5, 80, 80], np.nan, axis=0)
    longer = np.vstack([gaps, np.full((100, gaps.shape[1]), np.nan)])
    longer = np.hstack([longer, np.ones((len(longer), 1))])
    expected, result = bootstrap([Stratum("a", gaps)]), bootstrap([Stratum("a", longer)])
    for a, b in zip(_as_lists(expected.strata[0]), _as_lists(result.strata[0]), strict=True):
        assert a == pytest.approx(b[:-1], rel=1e-11)


def test_intervals_with_gaps_cover_the_true_mean_in_95_percent() -> None:
    rng = np.random.default_rng(13)
    drawn = rng.exponential(size=(120, 500))
    drawn[rng.random(drawn.shape) < 0.4] = np.nan
    intervals = bootstrap([Stratum("a", drawn)]).strata[0]
    assert 0.92 <= np.mean((intervals.low <= 1) & (intervals.high >= 1)) <= 0.97


def test_mean_of_strata_is_nan_if_a_stratum_has_no_items() -> None:
    empty = np.full((3, 1), np.nan)
    result = bootstrap([Stratum("a", np.ones((3, 1))), Stratum("b", empty)])
    assert _as_lists(result.strata[0]) == [[1.0], [1.0], [1.0]]
    assert np.isnan(_as_lists(result.strata[1])).all()
    assert np.isnan(_as_lists(result.overall)).all()


def test_intervals_cover_the_true_mean_in_95_percent() -> None:
    rng = np.random.default_rng(10)
    strata = [Stratum(name, rng.exponential(size=(60, 500))) for name in "abc"]
    overall = bootstrap(strata).overall
    coverage = np.mean((overall.low <= 1) & (overall.high >= 1))
    assert 0.92 <= coverage <= 0.97


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


def test_bootstrap_without_a_stratum_is_rejected() -> None:
    with pytest.raises(ValueError, match="no items"):
        bootstrap([])


@pytest.mark.parametrize("gaps", [0, 30])
def test_last_item_that_counts_is_drawn(gaps: int) -> None:
    column = np.zeros(60)
    column[-1] = 1.0
    column = np.concatenate([column[:1], np.full(gaps, np.nan), column[1:], [np.nan]])
    (result,) = bootstrap([Stratum("a", column[:, None])]).strata
    assert result.mean[0] == pytest.approx(1 / 60)
    assert result.high[0] > 0
