"""The rule of a memory test: verdicts, and the power and error rates that it states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from numbench.dataset.store import open_dataset
from numbench.memory_test.rule import (
    MARGIN,
    PairedDesign,
    decide,
    detectable_share,
    power,
    register_rule,
    shared_weights,
)
from numbench.stats.paired import Difference
from tests.memory_test.simulation import PlantedTask, simulate

CERTIFICATES = 200


def difference(mean: float, half: float, p: float) -> Difference:
    low, high = mean - half, mean + half
    return Difference(500, mean, low, high, p, None, low, high)


CLEAR, NONE = difference(9, 3, 1e-6), difference(0.5, 2, 0.6)


def test_a_significant_gain_of_one_task_is_memory() -> None:
    assert decide([CLEAR, NONE], NONE, 3) == "memory"
    assert decide([NONE, NONE], CLEAR, 3) == "memory"


def test_holms_correction_covers_all_tasks_and_their_mean() -> None:
    gain = difference(4, 3, 0.03)
    assert decide([gain], gain, 3) == "memory"
    assert decide([gain, NONE], NONE, 3) == "equivalent"


def test_a_small_p_value_is_not_enough_if_the_interval_includes_zero() -> None:
    assert decide([difference(1, 2, 1e-6)], NONE, 3) == "equivalent"


def test_a_loss_is_no_memory() -> None:
    loss = difference(-9, 3, 1e-6)
    assert decide([loss, NONE], NONE, 3) == "frozen harder"
    assert decide([loss, CLEAR], NONE, 3) == "memory"


@pytest.mark.parametrize("mean", [2.0, -2.0])
def test_equivalence_needs_both_bounds_within_the_margin(mean: float) -> None:
    result = difference(mean, 2, 0.1)
    assert decide([result], result, 3) == "inconclusive"
    assert decide([result], result, 4.1) == "equivalent"


def test_tasks_about_the_same_lists_count_twice() -> None:
    lists = {(1, 2), (3, 4)}
    assert shared_weights([{(9,)}, lists, set(lists)]) == (1.0, 2.0, 2.0)
    assert shared_weights([{(1, 2), (5,)}, lists]) == (1.5, 1.5)


DESIGNS = st.builds(
    lambda pairs, tasks: PairedDesign(pairs, (1.0,) * tasks),
    st.integers(5, 3000),
    st.integers(1, 9),
)
SHARES = st.floats(0, 0.99)


@given(DESIGNS, SHARES)
def test_the_detectable_share_has_the_power_of_80_percent(
    design: PairedDesign, right: float
) -> None:
    rights = [right] * design.tasks
    share = detectable_share(design, rights)
    if share is None:
        assert power(design, rights, 1.0) < 0.8
    else:
        assert power(design, rights, share) == pytest.approx(0.8, abs=1e-6)
        assert power(design, rights, max(0.0, share - 0.01)) < 0.8 or share < 0.01


def test_the_registered_share_is_that_of_the_page() -> None:
    lists = [{item.operands for item in items} for items in open_dataset("v1").by_task.values()]
    design = PairedDesign(500, shared_weights(lists))
    rule = register_rule(design, MARGIN)
    assert (rule.pairs, rule.tasks, rule.tests, rule.margin) == (500, 9, 10, 3.0)
    assert rule.detectable is not None
    assert power(design, [0.5] * 9, rule.detectable) == pytest.approx(0.8, abs=1e-3)
    assert f"a known share of {rule.detectable:.1%} or more" in rule.summary
    page = Path(__file__).parents[2] / "docs" / "validity.md"
    assert f"{rule.detectable:.1%} of the questions" in page.read_text(encoding="utf-8")
    assert "no known share" in register_rule(PairedDesign(5, (1.0,)), 3.0).summary


def planted(right: float, pairs: int = 150) -> list[PlantedTask]:
    """Three tasks, of which two ask about the same operands."""
    p = np.full(pairs, right)
    keys = [[(name, place) for place in range(pairs)] for name in "abb"]
    return [PlantedTask(f"task {i}", p, p, key) for i, key in enumerate(keys)]


@pytest.mark.parametrize(("right", "known"), [(0.3, 0.2), (0.6, 0.2), (0.6, 0.5), (0.9, 0.5)])
def test_models_that_know_items_are_found_with_the_stated_power(right: float, known: float) -> None:
    result = simulate(planted(right), known, CERTIFICATES, seed=5)
    found = result.verdicts.get("memory", 0)
    assert binomtest(found, CERTIFICATES, result.stated, alternative="less").pvalue > 1e-3
    # What is stated is no idle bound for such models.
    assert found / CERTIFICATES < result.stated + 0.35


@pytest.mark.parametrize(("right", "known"), [(0.3, 0.15), (0.8, 0.5)])
def test_the_stated_power_of_a_single_test_is_exact(right: float, known: float) -> None:
    """A model whose answers to a pair have nothing in common, and no other test to show memory."""
    p = np.full(150, right)
    result = simulate([PlantedTask("task", p, p, range(150))], known, CERTIFICATES, seed=8)
    assert 0.2 < result.stated < 0.95
    found = result.verdicts.get("memory", 0)
    assert abs(found / CERTIFICATES - result.stated) < 0.12


@pytest.mark.parametrize("right", [0.3, 0.9])
def test_models_that_know_nothing_are_rarely_accused(right: float) -> None:
    result = simulate(planted(right), 0.0, CERTIFICATES, seed=6, margin=10)
    accused = result.verdicts.get("memory", 0)
    assert binomtest(accused, CERTIFICATES, 0.025, alternative="greater").pvalue > 1e-3


def test_a_gain_of_the_margin_is_rarely_called_equivalent() -> None:
    """Knowing 10 % of the items, with half of the others right, is a gain of 5 points."""
    result = simulate(planted(0.5, 300), 0.1, CERTIFICATES, seed=7, margin=5)
    wrong = result.verdicts.get("equivalent", 0)
    assert binomtest(wrong, CERTIFICATES, 0.05, alternative="greater").pvalue > 1e-3
