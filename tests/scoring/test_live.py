"""Judging while a run goes on: as the score will be, and never a reason to end the run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.records import Completion, Failure
from bench.scoring import judge
from bench.tasks.items import make_item

ITEMS = [
    make_item("addition", "+", ("1", "1.5"), {}),
    make_item("minmax", "minimum", ("1", "2"), {}),
    make_item("sorting", "ascending", ("2", "1"), {}),
]
FAILED = Failure(kind="item", message="no")


@pytest.mark.parametrize(
    ("completion", "right"),
    [
        (Completion(text='{"answer": 2.50}'), True),
        (Completion(text='{"answer": 2.51}'), False),
        (Completion(text="perhaps"), False),
        (Completion(), False),
        (Completion(finish_reason="length"), False),
        (Completion(finish_reason="refusal"), False),
        (Completion(error=FAILED), None),
    ],
)
def test_an_answer_is_right_or_wrong_and_a_failure_neither(
    completion: Completion, right: bool | None
) -> None:
    assert judge(ITEMS[0], completion) is right


NUMBERS = st.from_regex(r"[-+]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,25})?", fullmatch=True)
TEXTS = st.one_of(
    st.text(),
    NUMBERS.map('{{"answer": {}}}'.format),
    st.lists(NUMBERS).map(lambda values: f'{{"answer": [{", ".join(values)}]}}'),
    st.text(alphabet='{}[]"answer:0123456789.eE-+×^⁰², \n`').map('{{"answer": {}}}'.format),
)


@given(st.sampled_from(ITEMS), TEXTS)
def test_no_text_is_too_strange_to_be_judged(item, text: str) -> None:
    assert judge(item, Completion(text=text)) in (True, False)
