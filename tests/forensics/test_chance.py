"""The number of matches expected by chance, against direct counts and SciPy."""

from decimal import Decimal
from random import Random

import pytest
from scipy import stats

from numbench.forensics.agreement import GivenAnswer, readings, round_to
from numbench.forensics.chance import ChanceModel, count_matches


def given(value: str, truth: str) -> GivenAnswer:
    number = Decimal(value)
    return GivenAnswer(number, len(number.normalize().as_tuple().digits), Decimal(truth))


def matches(
    answers: list[GivenAnswer], limit: int, first: GivenAnswer, *values: str
) -> tuple[int, ...]:
    """Return matches as they are, by errors and by units, of how many others, and of all."""
    trials = ChanceModel(answers, limit).trials(first, set(map(Decimal, values)))
    return (*(matching for matching, _ in trials), trials[0][1], trials[2][1])


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


def test_only_answers_of_as_many_digits_take_part_where_there_are_enough() -> None:
    long = [given(f"1.{index:03}9", "2") for index in range(100, 130)]
    short = [given("1.23", "2")] * 30
    assert matches([*long, *short], 15, short[0], "1.23")[3] == 29
    few = matches([*long, *short[:5]], 15, short[0], "1.23")
    assert few[3] == 34


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


def test_the_p_value_is_a_poisson_tail_of_the_largest_expectation() -> None:
    for matches in (0, 1, 3, 12):
        few, many = [(1, 90)] * 20, [(2, 30)] * 20
        count = count_matches("std", "sign", matches, few, many)
        expected = 20 * 2 / 30 + 20 / 601
        assert (count.decidable, count.expected) == (20, pytest.approx(expected))
        assert count.p_value == pytest.approx(stats.poisson.sf(matches - 1, expected))
