"""The metrics of the exact protocol: an independent computation and general properties."""

from decimal import Decimal

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from numbench.scoring import metrics

rounded_numbers = (
    st.decimals(allow_nan=False, allow_infinity=False)
    .map(metrics.round_significant)
    .filter(lambda value: abs(value.adjusted()) < 200)
)


def _by_mpmath(predicted: Decimal, truth: Decimal) -> float:
    """Evaluate the paper's formula with 450 digits."""
    with mpmath.workdps(450):
        y, yhat = mpmath.mpf(str(truth)), mpmath.mpf(str(predicted))
        epsilon = mpmath.mpf(10) ** -100
        smape = abs(yhat - y) / (abs(y) + abs(yhat) + epsilon)
        score = mpmath.log10(smape + epsilon) / -15
        return float(max(0, min(1, score)))


@given(rounded_numbers, rounded_numbers)
def test_log_smape_agrees_with_the_formula_in_450_digits(one: Decimal, other: Decimal) -> None:
    assert metrics.log_smape(one, other) == pytest.approx(_by_mpmath(one, other), abs=1e-12)


def test_correct_digits_require_the_same_sign_and_magnitude() -> None:
    cases = {("-3.75", "3.75"): 0, ("37.5", "3.75"): 0, ("3.75000000000001", "3.75"): 14,
             ("3.74999999999999", "3.75"): 2, ("0.142857142857", "0.142857142857143"): 12,
             ("3.8", "3.75"): 1, ("0", "3.75"): 0, ("3.75", "0"): 0,
             ("3.750", "3.75"): 15}  # fmt: skip
    for (predicted, truth), digits in cases.items():
        assert metrics.correct_digits(Decimal(predicted), Decimal(truth)) == digits, predicted


@given(rounded_numbers, st.integers(0, 14))
def test_correct_digits_counts_up_to_the_first_wrong_digit(truth: Decimal, index: int) -> None:
    assume(truth)
    digits = "".join(map(str, truth.as_tuple().digits)).ljust(15, "0")
    wrong = digits[:index] + ("1" if digits[index] != "1" else "2") + digits[index + 1 :]
    changed = Decimal(wrong).scaleb(truth.adjusted() - 14).copy_sign(truth)
    assert metrics.correct_digits(changed, truth) == index
