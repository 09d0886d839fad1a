"""Error kinds of wrong numbers and lists, each produced by one error."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from numbench.scoring import metrics
from numbench.scoring.error_kinds import list_error, number_error

EXAMPLES = [
    ("-3.75", "3.75", "sign"),
    ("37.5", "3.75", "magnitude"),
    ("3750", "3.75", "magnitude"),
    ("3.75000000000001", "3.75", "rounding"),
    ("3.74999999999999", "3.75", "rounding"),
    ("999.999999999999", "1000", "rounding"),
    ("999.99999999999", "1000", "rounding"),
    ("999.999999999998", "1000", "digit"),
    ("1000", "999.999999999999", "rounding"),
    ("3.75000000000002", "3.75", "digit"),
    ("0.142857142857142", "0.142857142857143", "rounding"),
    ("0.142857142857", "0.142857142857143", "precision"),
    ("0.1428571428571", "0.142857142857143", "precision"),
    ("0.1429", "0.142857142857143", "precision"),
    ("3.8", "3.75", "precision"),
    ("3.7", "3.75", "precision"),
    ("3.78", "3.75", "digit"),
    ("3.79", "3.75", "rough"),
    ("3.6", "3.75", "rough"),
    ("3", "3.75", "precision"),
    ("4", "3.75", "precision"),
    ("10", "9.99", "precision"),
    ("100", "99.96", "precision"),
    ("10", "7.3", "rough"),
    ("1300", "1299", "precision"),
    ("12", "13", "rough"),
    ("1134.6", "1234.6", "carry"),
    ("234.6", "1234.6", "carry"),
    ("34.6", "1034.6", "carry"),
    ("2234.6", "1234.6", "carry"),
    ("1234.7", "1234.6", "digit"),
    ("1210", "1200", "digit"),
    ("1201", "1200", "digit"),
    ("0.0113", "0.0123", "rough"),
    ("0.01134", "0.01234", "carry"),
    ("1.3345679", "1.23456789", "carry"),
    ("1.3345", "1.2345678", "carry"),
    ("1.334", "1.2345678", "rough"),
    ("5000000", "4000000", "rough"),
    ("1951", "1591", "swap"),
    ("195", "159", "rough"),
    ("1020", "1200", "swap"),
    ("1.05", "1.5", "rough"),
    ("1.5", "10.5", "rough"),
    ("1.05", "10.5", "magnitude"),
    ("1.0595", "10.5", "magnitude"),
    ("1.061", "10.5", "rough"),
    ("9.9e5", "1", "magnitude"),
    ("1.01e6", "9.99", "other"),
    ("56298", "56088", "digit"),
    ("4.5", "3.375", "rough"),
    ("33.7", "3.375", "magnitude"),
    ("35", "3.375", "other"),
    ("-3.4", "3.375", "sign"),
    ("-3.42", "3.375", "other"),
    ("-37.5", "3.75", "other"),
    ("0", "3.75", "other"),
    ("3.75", "0", "other"),
    ("3.75", "1e-300", "other"),
]


@pytest.mark.parametrize(("answer", "truth", "kind"), EXAMPLES)
def test_number_error_kind(answer: str, truth: str, kind: str) -> None:
    assert number_error(Decimal(answer), Decimal(truth)) == kind


@pytest.mark.parametrize(("answer", "truth", "kind"), EXAMPLES)
def test_negative_numbers_have_the_same_error_kind(answer: str, truth: str, kind: str) -> None:
    assert number_error(-Decimal(answer), -Decimal(truth)) == kind


# Truths by their digits, of which the first is not 0, and the decimal exponent of the first.
significands = st.integers(1, 10**15 - 1).map(str)
long_significands = st.integers(10**14, 10**15 - 1).map(str).filter(lambda s: s[-1] not in "01")
exponents = st.integers(-30, 14)


def _number(digits: str, exponent: int) -> Decimal:
    return Decimal(int(digits)).scaleb(exponent - len(digits) + 1)


@given(significands, exponents)
def test_opposite_sign_is_a_sign_error(digits: str, exponent: int) -> None:
    truth = _number(digits, exponent)
    assert number_error(-truth, truth) == "sign"


@given(significands, exponents, st.integers(-400, 400).filter(bool))
def test_power_of_ten_is_a_magnitude_error(digits: str, exponent: int, power: int) -> None:
    truth = _number(digits, exponent)
    assert number_error(truth.scaleb(power), truth) == "magnitude"


@given(long_significands, exponents, st.sampled_from([-1, 1]))
def test_one_unit_of_the_15th_digit_is_a_rounding_error(
    digits: str, exponent: int, step: int
) -> None:
    answer = Decimal(int(digits) + step).scaleb(exponent - 14)
    assert number_error(answer, _number(digits, exponent)) == "rounding"


@given(
    long_significands, exponents, st.integers(1, 13), st.sampled_from([ROUND_DOWN, ROUND_HALF_UP])
)
def test_truth_with_fewer_digits_is_a_precision_error(
    digits: str, exponent: int, precision: int, rounding: str
) -> None:
    truth = _number(digits, exponent)
    answer = Context(prec=precision, rounding=rounding).plus(truth)
    assume(abs(answer - truth) != Decimal(1).scaleb(exponent - 14))
    assert number_error(answer, truth) == "precision"


@given(long_significands, exponents, st.integers(0, 12), st.sampled_from([-1, 1]))
def test_one_unit_of_an_earlier_digit_is_a_carry_error(
    digits: str, exponent: int, index: int, step: int
) -> None:
    truth = _number(digits, exponent)
    answer = truth + step * Decimal(1).scaleb(exponent - index)
    # A leading digit that appears or vanishes can also look like a wrong power of ten.
    assume(answer > 0 and answer.adjusted() == exponent)
    assert number_error(answer, truth) == "carry"


@given(long_significands, exponents, st.integers(0, 13))
def test_exchanged_neighbouring_digits_are_a_swap(digits: str, exponent: int, index: int) -> None:
    left, right = digits[index : index + 2]
    assume(left != right and not (index == 0 and right == "0"))
    changed = digits[:index] + right + left + digits[index + 2 :]
    assert number_error(_number(changed, exponent), _number(digits, exponent)) == "swap"


@given(long_significands, exponents, st.integers(2, 12), st.integers(2, 8))
def test_a_wrong_later_digit_is_within_one_percent(
    digits: str, exponent: int, index: int, step: int
) -> None:
    """A digit after the second differs by more than one."""
    wrong = (int(digits[index]) + step) % 10
    assume(abs(wrong - int(digits[index])) > 1)
    changed = digits[:index] + str(wrong) + digits[index + 1 :]
    answer, truth = _number(changed, exponent), _number(digits, exponent)
    relative = abs(answer - truth) / abs(truth)
    # Two digits that differ by 9 can also be the result of an exchange.
    assume(number_error(answer, truth) != "swap")
    assert number_error(answer, truth) == ("digit" if relative <= Decimal("0.01") else "rough")
    assert metrics.correct_digits(answer, truth) == index


@given(long_significands, exponents, st.integers(2, 8))
def test_a_wrong_first_digit_is_of_the_right_order_of_magnitude(
    digits: str, exponent: int, step: int
) -> None:
    first = int(digits[0]) + step
    assume(first <= 9)
    truth = _number(digits, exponent)
    answer = _number(f"{first}{digits[1:]}", exponent)
    assert number_error(answer, truth) == (
        "magnitude" if abs(answer - 10 * truth) <= truth / 10 else "rough"
    )


numbers = st.decimals(allow_nan=False, allow_infinity=False)


@given(significands, exponents, st.integers(-60, 60), st.floats(-0.02, 0.02), st.booleans())
def test_closeness_decides_between_magnitude_sign_and_other(
    digits: str, exponent: int, power: int, error: float, opposite: bool
) -> None:
    """Compared with the definitions in exact fractions."""
    truth = _number(digits, exponent)
    answer = metrics.round_significant(truth * (1 + Decimal(error))).scaleb(power)
    answer = -answer if opposite else answer
    ratio = Fraction(answer) / Fraction(truth)
    nearest = min(
        (Fraction(10) ** k for k in range(-70, 71)), key=lambda p: abs(abs(ratio) / p - 1)
    )
    is_near = abs(abs(ratio) - nearest) <= nearest / 100
    kind = number_error(answer, truth)
    if opposite:
        assert kind == ("sign" if is_near and nearest == 1 else "other")
    elif nearest != 1 and is_near:
        assert kind == "magnitude"
    elif kind in ("digit", "rough", "other"):
        close = "digit" if is_near else "rough"
        assert kind == (close if Fraction(1, 10) < ratio < 10 else "other")


def test_enormous_exponents_are_classified_without_expansion() -> None:
    assert number_error(Decimal("1e999999999999999000"), Decimal(1)) == "magnitude"
    assert number_error(Decimal("2e999999999999999000"), Decimal(1)) == "other"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ([2, "1.0", 2], "order"),
        ([1, 1, 2], "count"),
        ([2, 2, 2], "count"),
        ([1, 2, 3], "altered"),
        ([3, 4, 5], "altered"),
        ([1, 2], "count"),
        ([1, 2, 2, 2], "count"),
        ([7], "count"),
    ],
)
def test_list_error_kind(answer: list[int | str], kind: str) -> None:
    truth = [Decimal(1), Decimal(2), Decimal(2)]
    assert list_error([Decimal(number) for number in answer], truth) == kind


@given(st.data(), st.lists(numbers, min_size=2, max_size=8))
def test_any_other_order_is_an_order_error(data: st.DataObject, values: list[Decimal]) -> None:
    shuffled = data.draw(st.permutations(values))
    assume(shuffled != values)
    assert list_error(shuffled, values) == "order"
    assert list_error(shuffled[1:], values) == "count"
