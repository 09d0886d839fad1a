"""Digits of questions, fits and replays of recorded responses, and the committed page."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.horizon_study.__main__ import HERE, render
from experiments.horizon_study.replay import includes, replay, replays
from experiments.horizon_study.responses import (
    SIZES,
    fit,
    question_digits,
    significant_digits,
)
from numbench.horizon.estimate import SizeOutcome
from numbench.horizon.psychometric import Curve, Estimate


@pytest.mark.parametrize(
    ("operand", "digits"),
    [("0", 1), ("4000", 1), ("0.003", 1), ("-85784589.7707", 12), ("10.10", 3), ("7", 1)],
)
def test_digits_are_counted_from_the_first_to_the_last_nonzero_one(
    operand: str, digits: int
) -> None:
    assert significant_digits(operand) == digits


def test_the_longest_operand_gives_the_size() -> None:
    assert question_digits(("6741.74", "-85784589.7707")) == 12


def recorded(curve: Curve, each: int, seed: int = 1) -> list[SizeOutcome]:
    """Return responses of a model that follows a curve, `each` per size."""
    rng = np.random.default_rng(seed)
    p = curve.probability(np.array(SIZES, np.float64)).tolist()
    return [
        SizeOutcome(size, float(rng.random() < p[size - 1]), tokens=10.0)
        for _ in range(each)
        for size in SIZES
    ]


def test_the_fit_finds_the_curve_of_the_responses() -> None:
    fitted = fit(recorded(Curve(6, 4, 0.02), 60))
    assert fitted.h50.low <= 6 <= fitted.h50.high
    assert fitted.h50.high / fitted.h50.low < 1.4
    assert fitted.p_value > 0.05
    assert fitted.isotonic == pytest.approx(6, rel=0.2)


def test_rates_that_rise_are_no_curve() -> None:
    outcomes = [SizeOutcome(size, float(size > 8)) for size in SIZES for _ in range(20)]
    assert fit(outcomes).p_value < 0.01


def test_a_replay_asks_no_question_twice() -> None:
    outcomes = recorded(Curve(6, 1, 0), 2)
    result = replay(outcomes)
    assert result.items == len(outcomes)
    assert result.stop in ("items", "exhausted")
    assert result.h50 == pytest.approx(fit(outcomes).h50)


def test_replays_find_the_horizon_with_fewer_questions() -> None:
    outcomes = recorded(Curve(6, 5, 0), 60)
    full = fit(outcomes).h50.value
    several = replays(outcomes, 5)
    assert len({result.h50 for result in several}) > 1
    assert all(result.items < len(outcomes) / 4 for result in several)
    assert sum(includes(result.h50, full) for result in several) >= 4


def test_horizons_beyond_the_sizes_are_one() -> None:
    assert includes(Estimate(90, 40, 200), 20)
    assert not includes(Estimate(90, 40, 200), 16)


def test_the_page_has_every_part() -> None:
    responses = {
        "addition": {("A", "none"): recorded(Curve(6, 5, 0), 20)},
        "division": {("A", "none"): recorded(Curve(100, 5, 0), 20)},
    }
    files = render(responses)
    page = files["README.md"].decode()
    assert "{" not in page
    assert "≥ 17 [≥ 17, ≥ 17]" in page
    assert {name for name in files if name.endswith(".svg")} == {
        "curves-addition.svg",
        "curves-division.svg",
        "replays.svg",
    }
    assert files["horizons.csv"].decode().count("\n") == 3
    assert "FOLDER" not in page and (HERE / "page.md").is_file()
