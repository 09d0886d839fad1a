"""Alignment of answers with the correct ones."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Answer
from numbench.reporting.digit_alignment import align_digits
from tests.support.case_tables import each_row


@each_row(__file__, "first_differences")
def test_the_first_difference_by_place_value(
    answer: Answer, truth: Answer, shift: int, at: int | None
) -> None:
    assert align_digits(answer, truth) == (shift, at)


plain = st.decimals(min_value=-(10**12), max_value=10**12, allow_nan=False, places=6).map(
    lambda value: f"{value.normalize():f}"
)


@given(plain, plain)
def test_both_lines_are_equal_up_to_the_first_difference(answer: str, truth: str) -> None:
    shift, at = align_digits(answer, truth)
    assert (at is None) == (Decimal(answer) == Decimal(truth))
    lines = [" " * max(0, shift) + answer, " " * max(0, -shift) + truth]
    points = {line.index(".") if "." in line else len(line) for line in lines}
    assert len(points) == 1
    if at is not None:
        one, other = (line if "." in line else f"{line}." for line in lines)
        one, other = one.ljust(at + 1, "0"), other.ljust(at + 1, "0")
        assert one[:at] == other[:at] and one[at] != other[at]
