"""Problem sizes in the paper's responses: a tenth gives a page (tests/heavy compares all)."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.horizon.__main__ import (
    question_digits,
    read_responses,
    render,
)


def test_digits_are_counted_from_the_first_to_the_last_nonzero_one() -> None:
    operands = (("0",), ("4000", "0.003"), ("6741.74", "-85784589.7707"), ("10.10", "7"))
    assert [question_digits(each) for each in operands] == [1, 1, 12, 3]


@pytest.mark.slow
def test_a_tenth_of_the_responses_gives_a_page(paper_results: Path) -> None:
    tenth = read_responses(paper_results).iloc[::10]
    files = render(tenth, replays=1)
    page = files["README.md"].decode()
    assert "The logistic curve fits in" in page and "nan" not in page
    assert "GPT OSS 120B · maximal" in page
    assert {name for name in files if name.endswith(".svg")} == {
        "curves-multiplication.svg",
        "curves-division.svg",
        "replays.svg",
    }
