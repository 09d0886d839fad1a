"""Minimum detectable differences: enumeration with exact fractions, SciPy and simulation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, multinomial

from numbench.stats.mcnemar import DiscordantCounts, mcnemar, min_significant_discordant
from numbench.stats.power import (
    critical_count,
    exact_power,
    minimum_detectable_difference,
)


@pytest.mark.parametrize(
    ("n", "discordance", "difference"), [(30, 0.5, 0.3), (60, 0.25, 0.1), (40, 0.2, 0.2)]
)
def test_power_agrees_with_enumeration_of_all_outcomes(
    n: int, discordance: float, difference: float
) -> None:
    first, second = (discordance + difference) / 2, (discordance - difference) / 2
    expected = sum(
        multinomial.pmf([b, c, n - b - c], n, [first, second, 1 - discordance])
        for b in range(n + 1)
        for c in range(min(b, n - b + 1))
        if mcnemar(b, c) <= 0.05
    )
    assert exact_power(n, discordance, difference) == pytest.approx(expected, abs=1e-6)


@given(st.integers(6, 2000))
def testcritical_count_is_the_least_significant_one(total: int) -> None:
    count = critical_count(total)
    assert mcnemar(count, total - count) <= 0.05 < mcnemar(count - 1, total - count + 1)


@given(st.integers(6, 400), st.data())
@settings(max_examples=40)
def test_80_percent_means_80_percent(n: int, data: st.DataObject) -> None:
    discordant = data.draw(st.integers(0, n))
    true = minimum_detectable_difference(DiscordantCounts(discordant, 0, n))
    assert true is not None and true <= 1
    discordance = max(discordant / n, true)
    assert 0.8 <= exact_power(n, discordance, true) < 0.802
    if true > 0.01:
        assert exact_power(n, max(discordant / n, 0.97 * true), 0.97 * true) < 0.8


def test_six_of_500_items_have_a_power_of_55_percent() -> None:
    assert min_significant_discordant() == 6
    assert exact_power(500, 6 / 500, 6 / 500) == pytest.approx(binom.sf(5, 500, 6 / 500))
    assert exact_power(500, 6 / 500, 6 / 500) == pytest.approx(0.555, abs=0.0005)
    true = minimum_detectable_difference(DiscordantCounts(0, 0, 500))
    assert true == pytest.approx(0.0158, abs=0.0001)
    assert minimum_detectable_difference(DiscordantCounts(4, 2, 500)) == true


def test_many_discordant_items_need_about_the_normal_difference() -> None:
    for counts in (DiscordantCounts(350, 345, 2000), DiscordantCounts(1500, 1500, 9000)):
        true = minimum_detectable_difference(counts)
        psi = (counts.first_only + counts.second_only) / counts.n
        assert true == pytest.approx((1.96 + 0.8416) * math.sqrt(psi / counts.n), rel=0.015)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_fewer_than_6_items_detect_no_difference(n: int) -> None:
    assert minimum_detectable_difference(DiscordantCounts(n, 0, n)) is None
    assert minimum_detectable_difference(DiscordantCounts(0, 0, n)) is None
