"""How wrong numbers and lists are told apart: answers made with one fault each."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.records import ErrorKind
from bench.scoring import metrics
from bench.scoring.error_kinds import list_error, number_error
from bench.scoring.rounded import rounded_form

EXAMPLES = [
    ("-3.75", "3.75", "sign"),
    ("37.5", "3.75", "magnitude"),
    ("3750", "3.75", "magnitude"),
    ("3.75000000000001", "3.75", "rounding"),
    ("3.74999999999999", "3.75", "rounding"),
    ("999.999999999999", "1000", "rounding"),
    ("999.99999999999", "1000", "rounding"),
    ("999.999999999998", "1000", "other"),
    ("1000", "999.999999999999", "rounding"),
    ("3.75000000000002", "3.75", "digit"),
    ("0.142857142857142", "0.142857142857143", "rounding"),
    ("0.142857142857", "0.142857142857143", "precision"),
    ("0.1428571428571", "0.142857142857143", "precision"),
    ("0.1429", "0.142857142857143", "precision"),
    ("3.8", "3.75", "precision"),
    ("3.7", "3.75", "precision"),
    ("3.6", "3.75", "digit"),
    ("3", "3.75", "precision"),
    ("4", "3.75", "precision"),
    ("10", "9.99", "precision"),
    ("100", "99.96", "precision"),
    ("10", "7.3", "other"),
    ("1300", "1299", "precision"),
    ("12", "13", "digit"),
    ("1134.6", "1234.6", "carry"),
    ("234.6", "1234.6", "carry"),
    ("34.6", "1034.6", "carry"),
    ("2234.6", "1234.6", "carry"),
    ("1234.7", "1234.6", "digit"),
    ("1210", "1200", "carry"),
    ("1201", "1200", "digit"),
    ("0.0113", "0.0123", "carry"),
    ("1951", "1591", "swap"),
    ("1020", "1200", "swap"),
    ("1.05", "1.5", "digit"),
    ("1.5", "10.5", "other"),
    ("56298", "56088", "digit"),
    ("4.5", "3.375", "other"),
    ("-37.5", "3.75", "other"),
    ("0", "3.75", "other"),
    ("3.75", "0", "other"),
    ("3.75", "1e-300", "other"),
]


@pytest.mark.parametrize(("answer", "truth", "kind"), EXAMPLES)
def test_errors_are_told_apart(answer: str, truth: str, kind: str) -> None:
    assert _kind(Decimal(answer), Decimal(truth)) == kind


@pytest.mark.parametrize(("answer", "truth", "kind"), EXAMPLES)
def test_an_error_is_the_same_for_negative_numbers(answer: str, truth: str, kind: str) -> None:
    assert _kind(-Decimal(answer), -Decimal(truth)) == kind


def _kind(answer: Decimal, truth: Decimal) -> ErrorKind:
    return number_error(*(rounded_form(metrics.rounded(value)) for value in (answer, truth)))


# Truths by their digits, the first of which is not 0, and the decimal place of the first.
significands = st.integers(1, 10**15 - 1).map(str)
long_significands = st.integers(10**14, 10**15 - 1).map(str).filter(lambda s: s[-1] not in "01")
places = st.integers(-30, 14)


def _number(digits: str, place: int) -> Decimal:
    return Decimal(int(digits)).scaleb(place - len(digits) + 1)


@given(significands, places)
def test_a_truth_with_the_other_sign_is_a_sign_error(digits: str, place: int) -> None:
    truth = _number(digits, place)
    assert _kind(-truth, truth) == "sign"


@given(significands, places, st.integers(-400, 400).filter(bool))
def test_a_truth_times_a_power_of_ten_is_a_magnitude_error(
    digits: str, place: int, power: int
) -> None:
    truth = _number(digits, place)
    assert _kind(truth.scaleb(power), truth) == "magnitude"


@given(long_significands, places, st.sampled_from([-1, 1]))
def test_one_unit_of_the_last_of_fifteen_digits_is_a_rounding_error(
    digits: str, place: int, step: int
) -> None:
    answer = Decimal(int(digits) + step).scaleb(place - 14)
    assert _kind(answer, _number(digits, place)) == "rounding"


@given(long_significands, places, st.integers(1, 13), st.sampled_from([ROUND_DOWN, ROUND_HALF_UP]))
def test_a_truth_with_fewer_digits_is_a_precision_error(
    digits: str, place: int, kept: int, rounding: str
) -> None:
    truth = _number(digits, place)
    answer = Context(prec=kept, rounding=rounding).plus(truth)
    assume(abs(answer - truth) != Decimal(1).scaleb(place - 14))
    assert _kind(answer, truth) == "precision"


@given(long_significands, places, st.integers(0, 13), st.sampled_from([-1, 1]))
def test_one_unit_of_an_earlier_digit_is_a_carry_error(
    digits: str, place: int, index: int, step: int
) -> None:
    truth = _number(digits, place)
    answer = truth + step * Decimal(1).scaleb(place - index)
    assume(answer > 0)
    # One more digit in front pushes the last one off the 15 that count.
    assume(answer.adjusted() <= place)
    assert _kind(answer, truth) == "carry"


@given(long_significands, places, st.integers(0, 13))
def test_two_exchanged_neighbours_are_a_swap(digits: str, place: int, index: int) -> None:
    one, other = digits[index : index + 2]
    assume(one != other and not (index == 0 and other == "0"))
    spoilt = digits[:index] + other + one + digits[index + 2 :]
    assert _kind(_number(spoilt, place), _number(digits, place)) == "swap"


@given(long_significands, places, st.integers(1, 13), st.integers(2, 8))
def test_a_wrong_later_digit_is_a_digit_error(
    digits: str, place: int, index: int, step: int
) -> None:
    """Here a digit before the last is off by more than one."""
    wrong = str((int(digits[index]) + step) % 10)
    spoilt = digits[:index] + wrong + digits[index + 1 :]
    answer, truth = _number(spoilt, place), _number(digits, place)
    assert _kind(answer, truth) == "digit"
    assert metrics.correct_digits(answer, truth) == index


@given(long_significands, places, st.integers(2, 8))
def test_a_wrong_first_digit_is_another_number(digits: str, place: int, step: int) -> None:
    first = int(digits[0]) + step
    assume(first <= 9)
    answer = _number(f"{first}{digits[1:]}", place)
    assert _kind(answer, _number(digits, place)) == "other"


numbers = st.decimals(allow_nan=False, allow_infinity=False)


@given(numbers, numbers)
def test_every_pair_of_numbers_has_a_kind(answer: Decimal, truth: Decimal) -> None:
    kind = _kind(answer, truth)
    digits = metrics.correct_digits(metrics.rounded(answer), metrics.rounded(truth))
    assert kind != "digit" or digits >= 1
    assert kind != "other" or not answer or not truth or digits == 0


def test_an_enormous_exponent_costs_nothing() -> None:
    assert _kind(Decimal("1e999999999999999000"), Decimal(1)) == "magnitude"
    assert _kind(Decimal("2e999999999999999000"), Decimal(1)) == "other"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ([2, "1.0", 2], "order"),
        ([1, 1, 2], "altered"),
        ([1, 2, 3], "altered"),
        ([1, 2], "count"),
        ([1, 2, 2, 2], "count"),
        ([7], "count"),
    ],
)
def test_wrong_lists_are_told_apart(answer: list[int | str], kind: str) -> None:
    truth = [Decimal(1), Decimal(2), Decimal(2)]
    assert list_error([Decimal(number) for number in answer], truth) == kind


@given(st.lists(numbers, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_any_other_order_is_an_order_error(values: list[Decimal], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assume(shuffled != values)
    assert list_error(shuffled, values) == "order"
    assert list_error(shuffled[1:], values) == "count"
