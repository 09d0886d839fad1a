"""The measures of the exact protocol against an independent computation and their own laws."""

from __future__ import annotations

from decimal import Decimal

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.scoring import metrics

rounded_numbers = st.decimals(allow_nan=False, allow_infinity=False).map(metrics.rounded).filter(
    lambda value: abs(value.adjusted()) < 200
)  # fmt: skip


def _by_mpmath(predicted: Decimal, truth: Decimal) -> float:
    """The paper's formula, term by term, with 450 digits."""
    with mpmath.workdps(450):
        y, yhat = mpmath.mpf(str(truth)), mpmath.mpf(str(predicted))
        epsilon = mpmath.mpf(10) ** -100
        smape = abs(yhat - y) / (abs(y) + abs(yhat) + epsilon)
        score = mpmath.log10(smape + epsilon) / -15
        return float(max(0, min(1, score)))


@given(rounded_numbers, rounded_numbers)
def test_log_smape_agrees_with_the_formula_in_450_digits(one: Decimal, other: Decimal) -> None:
    assert metrics.log_smape(one, other) == pytest.approx(_by_mpmath(one, other), abs=1e-12)


@given(rounded_numbers, st.integers(-14, -1), st.integers(1, 9))
def test_log_smape_of_near_misses_agrees_too(truth: Decimal, place: int, step: int) -> None:
    assume(truth)
    predicted = metrics.rounded(truth + step * Decimal(10) ** (truth.adjusted() + place))
    expected = _by_mpmath(predicted, truth)
    assert metrics.log_smape(predicted, truth) == pytest.approx(expected, abs=1e-12)


@given(rounded_numbers, rounded_numbers)
def test_log_smape_is_symmetric_and_within_bounds(one: Decimal, other: Decimal) -> None:
    score = metrics.log_smape(one, other)
    assert 0 <= score <= 1
    assert score == metrics.log_smape(other, one)


@given(rounded_numbers)
def test_log_smape_is_one_for_the_truth_and_zero_for_its_negative(value: Decimal) -> None:
    assert metrics.log_smape(value, value) == 1
    assert not value or metrics.log_smape(-value, value) == 0


def test_an_enormous_exponent_costs_nothing() -> None:
    enormous = Decimal("1e999999999999999000")
    assert metrics.log_smape(metrics.rounded(enormous), Decimal(1)) == 0
    assert metrics.number_error(enormous, Decimal(1)) == "magnitude"


@pytest.mark.parametrize(
    ("predicted", "truth", "kind", "digits"),
    [
        ("-3.75", "3.75", "sign", 0),
        ("37.5", "3.75", "magnitude", 0),
        ("3750", "3.75", "magnitude", 0),
        ("3.75000000000001", "3.75", "rounding", 14),
        ("3.74999999999999", "3.75", "rounding", 2),
        ("3.75000000000002", "3.75", "digit", 14),
        ("0.142857142857142", "0.142857142857143", "rounding", 14),
        ("0.142857142857", "0.142857142857143", "digit", 12),
        ("3.8", "3.75", "digit", 1),
        ("-37.5", "3.75", "digit", 0),
        ("0", "3.75", "digit", 0),
        ("3.75", "0", "digit", 0),
    ],
)
def test_errors_are_told_apart(predicted: str, truth: str, kind: str, digits: int) -> None:
    assert metrics.number_error(Decimal(predicted), Decimal(truth)) == kind
    assert metrics.correct_digits(Decimal(predicted), Decimal(truth)) == digits


@given(rounded_numbers, st.integers(0, 14))
def test_correct_digits_counts_up_to_the_first_wrong_one(truth: Decimal, place: int) -> None:
    assume(truth)
    digits = "".join(map(str, truth.as_tuple().digits)).ljust(15, "0")
    wrong = digits[:place] + ("1" if digits[place] != "1" else "2") + digits[place + 1 :]
    spoilt = Decimal(wrong).scaleb(truth.adjusted() - 14).copy_sign(truth)
    assert metrics.correct_digits(spoilt, truth) == place


def test_a_list_in_the_wrong_order_is_told_from_one_with_wrong_numbers() -> None:
    truth = [Decimal(1), Decimal(2), Decimal(2)]
    assert metrics.list_error([Decimal(2), Decimal("1.0"), Decimal(2)], truth) == "order"
    assert metrics.list_error([Decimal(1), Decimal(1), Decimal(2)], truth) == "digit"
    assert metrics.list_error([Decimal(1), Decimal(2)], truth) == "digit"
