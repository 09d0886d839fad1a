"""The number of matches expected by chance, against direct counts and SciPy."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest
from scipy import stats

from numbench.forensics.agreement import readings, round_to
from numbench.forensics.chance import ChanceMatches, ChanceModel, GivenAnswer, make_targets
from numbench.forensics.explanations import expected_matches, poisson_tail


def given(value: str, truth: str) -> GivenAnswer:
    number = Decimal(value)
    return GivenAnswer(number, len(number.normalize().as_tuple().digits), Decimal(truth))


def matches(
    answers: list[GivenAnswer], limit: int, first: GivenAnswer, *values: str
) -> ChanceMatches:
    targets = make_targets(map(Decimal, values), first.truth, first.digits, limit)
    return ChanceModel(answers, limit).matches(first, targets)


def test_other_answers_and_their_errors_are_counted() -> None:
    # Errors: +1, +1, −1 and +7 units of the fourth digit.
    answers = [
        given("1.235", "1.234"),
        given("5.679", "5.678"),
        given("1.233", "1.234"),
        given("7.778", "7.771"),
    ]
    first = answers[0]
    assert matches(answers, 4, first, "1.235") == (0, 1, 1, 3, 3)
    assert matches(answers, 4, first, "1.233") == (1, 1, 1, 3, 3)
    assert matches(answers, 4, first, "1.241") == (0, 1, 1, 3, 3)
    assert matches(answers, 4, first, "5.679") == (1, 0, 0, 3, 3)


def test_unit_of_the_last_digit_is_that_of_each_answer() -> None:
    # One unit too large, of the third and of the sixth digit.
    answers = [given("1.24", "1.23"), given("5.67891", "5.6789")]
    assert matches(answers, 15, answers[0], "1.24") == (0, 0, 1, 1, 1)


def test_unit_is_that_of_the_answer_where_the_exact_value_is_zero() -> None:
    answers = [given("3400", "0"), given("1.2", "0"), given("0.56", "0")]
    assert matches(answers, 15, answers[0], "0.12").by_unit == 1
    # 12 units of each one's last digit, where all digits are given.
    assert matches(answers[1:2] * 2, 2, answers[1], "0.012").by_unit == 2


def test_unit_at_full_precision_is_that_of_the_rounded_exact_value() -> None:
    # 9.99 in two digits is 10, whose units are 1: the answers are 1 and 2 of them off.
    answers = [given("11", "9.99"), given("12", "9.99")]
    assert matches(answers, 2, answers[0], "12") == (1, 1, 1, 1, 1)
    assert matches(answers, 2, answers[0], "13") == (0, 0, 0, 1, 1)


def test_only_answers_of_as_many_digits_take_part_where_there_are_enough() -> None:
    long = [given(f"1.{index:03}9", "2") for index in range(100, 130)]
    short = [given("1.23", "2")] * 30
    assert matches([*long, *short], 15, short[0], "1.23").others == 29
    few = matches([*long, *short[:5]], 15, short[0], "1.23")
    assert few.others == 34


def test_matches_agree_with_a_direct_count() -> None:
    random = Random(3)
    answers = [
        given(str(random.randint(1001, 1099) / 1000), str(random.randint(1001, 1099) / 1000))
        for _ in range(200)
    ]
    answers = [answer for answer in answers if answer.digits == 4]
    for answer in answers[:40]:
        targets = readings((Decimal(random.randint(1001, 1099)) / 1000,), 4)
        others = list(answers)
        others.remove(answer)
        moved = [round_to(answer.truth + other.value - other.truth, 4) for other in others]
        by_answer = sum(other.value in targets for other in others)
        by_error = sum(value in targets for value in moved)
        # All answers have the same digits and magnitude: their last digits have the same unit.
        direct = (by_answer, by_error, by_error, len(others), len(others))
        assert matches(answers, 4, answer, *map(str, targets)) == direct


@pytest.mark.parametrize("expected", [1e-6, 0.01, 0.7, 5.0, 40.0])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 40, 90])
def test_poisson_tail(count: int, expected: float) -> None:
    # Where the tail is below the smallest float64 number, both are 0.
    exact = stats.poisson.sf(count - 1, expected)
    assert poisson_tail(count, expected) == pytest.approx(exact, rel=1e-6, abs=1e-250)


def test_expectation_is_never_zero() -> None:
    # 10 answers, each compared with 9 others: 90 pairs without a match.
    assert expected_matches([(0, 9)] * 10) == pytest.approx(10 / 91)
    # An answer without others could be a match by chance.
    assert expected_matches([(0, 0)]) >= 1
    assert expected_matches([(3, 9)] * 10) == pytest.approx(10 / 3 + 10 / 91)
