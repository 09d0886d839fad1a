"""The bootstrap in strata: against a plain loop, by simulation, and bit for bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bench.stats.bootstrap import RESAMPLES, Bounded, bootstrap
from bench.stats.draws import bootstrap_weights, coin_flips
from bench.stats.strata import Column, Stratum, on_grid


@pytest.fixture(scope="module")
def values() -> Column:
    found: Column = np.random.default_rng(1).exponential(size=(80, 12))
    return found


def _listed(bounded: Bounded) -> list[list[float]]:
    return [column.tolist() for column in bounded]


def test_the_mean_of_strata_agrees_with_a_plain_loop() -> None:
    rng = random.Random(2)
    strata = [[rng.expovariate(1) for _ in range(30)], [rng.expovariate(0.2) for _ in range(50)]]
    means = sorted(
        sum(sum(rng.choices(own, k=len(own))) / len(own) for own in strata) / 2
        for _ in range(20_000)
    )
    found = bootstrap(
        [Stratum(name, np.array([own]).T) for name, own in zip("ab", strata, strict=True)]
    )
    spread = means[-500] - means[500]
    assert found.overall.low[0] == pytest.approx(means[500], abs=0.04 * spread)
    assert found.overall.high[0] == pytest.approx(means[-500], abs=0.04 * spread)
    assert found.overall.mean[0] == pytest.approx(sum(sum(own) / len(own) for own in strata) / 2)


def test_strata_are_drawn_independently() -> None:
    # The same values twice: shared draws would leave the interval as wide as that of one.
    column = np.tile([0.0, 1.0], 200)[:, None]
    found = bootstrap([Stratum("a", column), Stratum("b", column)])
    one = float(found.strata[0].high[0] - found.strata[0].low[0])
    both = float(found.overall.high[0] - found.overall.low[0])
    assert both == pytest.approx(one / 2**0.5, rel=0.05)


def test_order_and_company_of_columns_change_no_bit(values: Column) -> None:
    strata = [Stratum("a", values), Stratum("b", values[::-1])]
    found = bootstrap(strata)
    turned = bootstrap([Stratum(s.name, s.values[:, ::-1]) for s in strata])
    alone = bootstrap([Stratum(s.name, s.values[:, 3:4]) for s in strata])
    for one, other, single in zip(
        [*found.strata, found.overall],
        [*turned.strata, turned.overall],
        [*alone.strata, alone.overall],
        strict=True,
    ):
        assert _listed(one) == [column[::-1] for column in _listed(other)]
        assert _listed(single) == [column[3:4] for column in _listed(one)]


def test_few_items_are_drawn_without_the_gaps_between_them(values: Column) -> None:
    few = values[:40]
    gaps = np.insert(few, [0, 5, 40], np.nan, axis=0)
    gaps[:, 1] = np.nan
    whole, found = bootstrap([Stratum("a", few)]), bootstrap([Stratum("a", gaps)])
    for one, other in zip(_listed(whole.strata[0]), _listed(found.strata[0]), strict=True):
        assert np.isnan(other[1])
        assert one[:1] + one[2:] == pytest.approx(other[:1] + other[2:], rel=1e-12)


def test_many_items_with_gaps_have_the_interval_of_those_that_count(values: Column) -> None:
    gaps = np.insert(values, [0, 3, 5, 5, 9, 40], np.nan, axis=0)
    whole, found = bootstrap([Stratum("a", values)]), bootstrap([Stratum("a", gaps)])
    one, other = whole.strata[0], found.strata[0]
    assert one.mean == pytest.approx(other.mean, rel=1e-12)
    assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.06)
    assert other.low == pytest.approx(one.low, rel=0.03)


def test_items_beyond_the_last_that_counts_change_no_bit(values: Column) -> None:
    gaps = np.insert(values, [5, 80, 80], np.nan, axis=0)
    longer = np.vstack([gaps, np.full((100, gaps.shape[1]), np.nan)])
    longer = np.hstack([longer, np.ones((len(longer), 1))])
    one, other = bootstrap([Stratum("a", gaps)]), bootstrap([Stratum("a", longer)])
    for bounds, again in zip(_listed(one.strata[0]), _listed(other.strata[0]), strict=True):
        assert bounds == pytest.approx(again[:-1], rel=1e-11)


def test_gaps_keep_the_coverage() -> None:
    rng = np.random.default_rng(13)
    drawn = rng.exponential(size=(120, 500))
    drawn[rng.random(drawn.shape) < 0.4] = np.nan
    found = bootstrap([Stratum("a", drawn)]).strata[0]
    assert 0.92 <= np.mean((found.low <= 1) & (found.high >= 1)) <= 0.97


def test_a_stratum_without_items_leaves_no_mean_of_strata() -> None:
    nothing = np.full((3, 1), np.nan)
    found = bootstrap([Stratum("a", np.ones((3, 1))), Stratum("b", nothing)])
    assert _listed(found.strata[0]) == [[1.0], [1.0], [1.0]]
    assert np.isnan(_listed(found.overall)).all()


def test_19_of_20_intervals_hold_the_true_mean() -> None:
    rng = np.random.default_rng(10)
    strata = [Stratum(name, rng.exponential(size=(60, 500))) for name in "abc"]
    overall = bootstrap(strata).overall
    held = np.mean((overall.low <= 1) & (overall.high >= 1))
    assert 0.92 <= held <= 0.97


def test_sums_on_the_grid_are_exact_and_hardly_differ(values: Column) -> None:
    grid = on_grid(values)
    assert np.abs(grid - values).max() < 1e-11 * values.max()
    forward, backward = np.add.accumulate(grid)[-1], np.add.accumulate(grid[::-1])[-1]
    assert forward.tolist() == backward.tolist()
    assert on_grid(np.zeros((3, 1))).tolist() == [[0.0]] * 3


def test_draws_stay_the_same_for_ever() -> None:
    (weights,) = bootstrap_weights(5, 3, "addition")
    assert weights.tolist() == [[0, 1, 1, 1, 2], [1, 2, 1, 0, 1], [2, 2, 1, 0, 0]]
    (flips,) = coin_flips(5, 3, "addition")
    assert flips.tolist() == [[1, 0, 0, 1, 0], [0, 1, 0, 1, 1], [1, 0, 1, 1, 0]]


def test_draws_are_those_of_their_stream_and_fair() -> None:
    (one,), (other,) = bootstrap_weights(9, 50, "a"), bootstrap_weights(9, 50, "b")
    assert one.tolist() != other.tolist()
    assert one.sum(axis=1).tolist() == [9.0] * 50
    flips = np.concatenate(list(coin_flips(70, RESAMPLES)))
    assert set(np.unique(flips)) == {0.0, 1.0}
    assert np.abs(flips.mean(axis=0) - 0.5).max() < 0.025


def test_more_items_leave_the_flips_of_the_first() -> None:
    (some,), (more,) = coin_flips(60, 30, "a"), coin_flips(200, 30, "a")
    assert more[:, :60].tolist() == some.tolist()
    assert more[:, 64:124].tolist() != some.tolist()


def test_chunks_of_draws_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    (weights,), (flips,) = bootstrap_weights(70, 40), coin_flips(70, 40)
    monkeypatch.setattr("bench.stats.draws._AT_ONCE", 500)
    assert np.concatenate(list(bootstrap_weights(70, 40))).tolist() == weights.tolist()
    assert np.concatenate(list(coin_flips(70, 40))).tolist() == flips.tolist()


def test_without_a_stratum_there_is_nothing_to_draw_from() -> None:
    with pytest.raises(ValueError, match="no items"):
        bootstrap([])
