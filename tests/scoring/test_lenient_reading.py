"""The lenient protocol: what it reads, and what it must not read.

`lenient_examples.jsonl` has texts with a rule, which a person reads at once, and texts with a
reason (`why`), in which a hasty reader reads another value than a person (null: none).
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Item
from numbench.scoring.answer_parser import ParsedAnswer, parse_answer
from numbench.scoring.lenient_reading import MAX_CHARACTERS, read_leniently
from numbench.scoring.notation import AnswerValue
from numbench.tasks import PAPER_TASKS
from numbench.tasks.base import AnswerKind
from numbench.tasks.items import make_item
from numbench.thinking_text import separate_thinking

QUESTIONS = {
    "number": make_item("addition", "+", ("10", "2.5"), {}),
    "letter": make_item("interval", "interval", ("5", "1", "9"), {}),
    "list": make_item("sorting", "ascending", ("3", "-1", "2.5"), {}),
}
"""The questions of the examples, if they do not name another."""
TASKS_BY_OPERATOR = {
    operator: task.name for task in PAPER_TASKS.values() for operator in task.operators
}


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A text that answers a question.

    value: what a person reads. rule: of the lenient protocol. why: it is easily misread.
    question: operator and operands, if it is not the usual one of the kind (`QUESTIONS`).
    """

    text: str
    kind: AnswerKind
    value: str | tuple[str, ...] | None
    rule: int | None = None
    why: str | None = None
    question: tuple[str, ...] = ()

    @property
    def item(self) -> Item:
        if not self.question:
            return QUESTIONS[self.kind]
        operator, *operands = self.question
        return make_item(TASKS_BY_OPERATOR[operator], operator, tuple(operands), {})

    @property
    def answer(self) -> AnswerValue | None:
        if isinstance(self.value, tuple):
            return tuple(map(Decimal, self.value))
        return Decimal(self.value) if self.value and self.kind == "number" else self.value


LINES = (Path(__file__).parent / "lenient_examples.jsonl").read_text().splitlines()
EXAMPLES = [msgspec.json.decode(line, type=Example) for line in LINES]
READABLE = [example for example in EXAMPLES if example.rule is not None]
MISLEADING = [example for example in EXAMPLES if example.rule is None]


def read(text: str, item: Item) -> tuple[ParsedAnswer | None, ParsedAnswer | None]:
    """Return what the protocols exact and lenient read."""
    answer = separate_thinking(text).answer
    exact = parse_answer(answer, PAPER_TASKS[item.task].answer_kind, prompt=item.prompt)
    return exact, exact or read_leniently(answer, item)


def test_every_rule_has_examples() -> None:
    assert {example.rule for example in READABLE} == set(range(5, 13))
    assert len(READABLE) >= 200
    assert len(MISLEADING) >= 200
    assert all(example.why for example in MISLEADING)


@pytest.mark.parametrize("example", READABLE, ids=lambda example: example.text[:40])
def test_clear_answer_in_another_format_is_read(example: Example) -> None:
    exact, lenient = read(example.text, example.item)
    assert exact is None
    assert lenient == (example.answer, example.rule)


@pytest.mark.parametrize("example", MISLEADING, ids=lambda example: example.text[:40])
def test_no_protocol_reads_another_value_than_a_person(example: Example) -> None:
    for parsed in read(example.text, example.item):
        assert parsed is None or parsed.value == example.answer


@pytest.mark.parametrize(
    "example",
    [example for example in READABLE if example.rule and example.rule >= 8],
    ids=lambda example: example.text[:40],
)
def test_statement_without_an_end_may_go_on_at_the_token_limit(example: Example) -> None:
    assert read_leniently(example.text, example.item, is_cut_off=True) is None


def test_very_long_text_is_not_read() -> None:
    text = "{answer: 5}" + " " * MAX_CHARACTERS
    assert read_leniently(text[:MAX_CHARACTERS], QUESTIONS["number"]) == (5, 5)
    assert read_leniently("x" + text, QUESTIONS["number"]) is None


_numbers = st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9),
                       max_value=10**9).map("{:f}".format)  # fmt: skip
_FRAMES = ["{{'answer': {}}}", "\\boxed{{{}}}", "<answer>{}</answer>", "Sum.\nAnswer: {}",
           "The sum is {}.", "10 + 2.5 = {}"]  # fmt: skip


@given(_numbers, _numbers, st.sampled_from(_FRAMES), st.sampled_from(_FRAMES))
def test_two_different_statements_are_never_an_answer(
    one: str, other: str, frame: str, other_frame: str
) -> None:
    text = f"{frame.format(one)}\n{other_frame.format(other)}"
    lenient = read_leniently(text, QUESTIONS["number"])
    assert (
        lenient is None
        or Decimal(one) == Decimal(other) == lenient.value
        or (
            # Before a statement, an equation or another sentence is a derivation.
            frame in _FRAMES[4:]
            and other_frame not in _FRAMES[4:]
            and lenient.value == Decimal(other)
        )
    )


@given(_numbers, st.sampled_from(_FRAMES))
def test_every_frame_has_the_value_of_its_number(number: str, frame: str) -> None:
    exact, lenient = read(frame.format(number), QUESTIONS["number"])
    assert exact is None
    assert lenient is not None
    assert lenient.value == Decimal(number)


@given(_numbers, st.sampled_from(_FRAMES[:3]), st.integers(1, 8))
def test_statement_that_is_cut_off_is_not_read(number: str, frame: str, missing: int) -> None:
    text = frame.format(number)
    lenient = read_leniently(text[: -min(missing, len(text))], QUESTIONS["number"])
    assert lenient is None or lenient.value == Decimal(number)
