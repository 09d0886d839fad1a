"""Alignment of answers with the correct ones."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Answer
from numbench.reporting.digit_alignment import align_digits


@pytest.mark.parametrize(
    ("answer", "truth", "shift", "at"),
    [
        ("12.5", "12.5", 0, None),
        ("12.50", "12.5", 0, None),
        ("5", "5.0", 0, None),
        ("12.6", "12.5", 0, 3),
        ("12", "12.5", 0, 3),
        ("12.5", "12", 0, 3),
        # One digit too many before the point: the first column has a digit above a blank.
        ("125", "12.5", -1, 0),
        ("1.25", "12.5", 1, 0),
        ("-12.5", "12.5", -1, 0),
        ("12.5", "-12.5", 1, 0),
        ("0.001", "0.01", 0, 3),
        # No common column: from the left, as they are written.
        ("1.5e300", "1.7", 0, 2),
        ("1" * 90, "12", 0, 1),
        ("1.2e1", "12", 0, None),
        ("B", "B", 0, None),
        ("B", "C", 0, 0),
        (("1", "2.0"), ("1", "2"), 0, None),
        (("1", "3"), ("1", "2"), 0, 1),
        (("1",), ("1", "2"), 0, 1),
        (("1", "2", "3"), ("1", "2"), 0, 2),
    ],
)
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
