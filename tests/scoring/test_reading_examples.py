"""What both protocols read in texts that a careful person finds clear, doubtful or empty.

`reading_examples.jsonl`: `value` is what a careful person reads (null: nothing for certain). `by`
is the strictest protocol that reads it; without it, both may leave the text unread. No protocol may
read another value.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from numbench.records import Item
from numbench.scoring import score_exact, score_lenient
from numbench.scoring.answer_parser import ParsedAnswer, parse_answer
from numbench.scoring.lenient_reading import read_leniently
from numbench.scoring.notation import AnswerValue
from numbench.tasks import PAPER_TASKS
from numbench.tasks.base import AnswerKind
from numbench.tasks.items import make_item
from numbench.thinking_text import separate_thinking
from tests.scoring.items import LETTER, ORDER, SUM, text_response

USUAL_QUESTIONS = {"number": SUM, "letter": LETTER, "list": ORDER}
TASKS_BY_OPERATOR = {
    operator: task.name for task in PAPER_TASKS.values() for operator in task.operators
}


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """question: operator and operands, if it is not the usual one of the kind."""

    text: str
    kind: AnswerKind
    value: str | tuple[str, ...] | None
    by: Literal["exact", "lenient"] | None = None
    question: tuple[str, ...] = ()

    @property
    def item(self) -> Item:
        if not self.question:
            return USUAL_QUESTIONS[self.kind]
        operator, *operands = self.question
        return make_item(TASKS_BY_OPERATOR[operator], operator, tuple(operands), {})

    @property
    def answer(self) -> AnswerValue | None:
        if isinstance(self.value, tuple):
            return tuple(map(Decimal, self.value))
        return Decimal(self.value) if self.value and self.kind == "number" else self.value


LINES = (Path(__file__).parent / "reading_examples.jsonl").read_text(encoding="utf-8").splitlines()
EXAMPLES = [msgspec.json.decode(line, type=Example) for line in LINES]


def read(example: Example) -> dict[str, ParsedAnswer | None]:
    text = separate_thinking(example.text).answer
    item = example.item
    exact = parse_answer(text, example.kind, prompt=item.prompt, operator=item.operator)
    return {"exact": exact, "lenient": exact or read_leniently(text, item)}


def test_no_protocol_reads_another_value_than_a_person() -> None:
    wrong = [
        (protocol, example.text, parsed.value)
        for example in EXAMPLES
        for protocol, parsed in read(example).items()
        if parsed is not None and parsed.value != example.answer
    ]
    assert wrong == []


def test_clear_answers_are_read_by_the_protocol() -> None:
    readings = [(example, read(example)) for example in EXAMPLES]
    unread = [(e.by, e.text) for e, parsed in readings if e.by and parsed[e.by] is None]
    read_by_exact = [e.text for e, parsed in readings if e.by == "lenient" and parsed["exact"]]
    assert (unread, read_by_exact) == ([], [])


def test_there_are_enough_examples_of_every_sort() -> None:
    doubtful = [example for example in EXAMPLES if example.value is None]
    assert len(doubtful) > 1000
    assert sum(example.by == "exact" for example in EXAMPLES) > 150
    assert sum(example.by == "lenient" for example in EXAMPLES) > 150


@pytest.mark.parametrize("by", ["exact", "lenient"])
def test_scores_follow_the_readings(by: str) -> None:
    """The protocols separate the thinking, and pass the question on to the reading."""
    score = {"exact": score_exact, "lenient": score_lenient}[by]
    for example in EXAMPLES:
        parsed = read(example)[by]
        result = score(example.item, text_response(example.item, example.text))
        assert (result.rule, result.parsed is None) == (parsed and parsed.rule, parsed is None)
