"""How answers are read: what the protocols `exact` and `lenient` read, and what they do not.

`readings.jsonl` has texts with the value and the rule by which a protocol reads them; texts without
a rule state no answer. `is_cut_off`: the output ended at the token limit.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Item, ReadingRule, Response
from numbench.scoring import score_exact, score_lenient
from numbench.scoring.answer_parser import MAX_CHARACTERS, parse_answer
from numbench.scoring.lenient_reading import MAX_CHARACTERS as MAX_LENIENT_CHARACTERS
from numbench.scoring.notation import format_number, read_number
from numbench.tasks.base import AnswerKind
from tests.scoring.items import LETTER, ORDER, SUM, text_response

ITEMS: dict[AnswerKind, Item] = {"number": SUM, "letter": LETTER, "list": ORDER}


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text, and how it is read. rule None: no protocol reads an answer."""

    kind: AnswerKind
    text: str
    value: str | tuple[str, ...] | None = None
    rule: ReadingRule | None = None
    is_cut_off: bool = False

    def read(self, protocol: str) -> tuple[ReadingRule | None, str | tuple[str, ...] | None]:
        """Return the rule and the value of a reading."""
        item = ITEMS[self.kind]
        reason = "length" if self.is_cut_off else "stop"
        response = Response(item_id=item.id, text=self.text, finish_reason=reason)
        score = {"exact": score_exact, "lenient": score_lenient}[protocol](item, response)
        return score.rule, score.parsed


LINES = (Path(__file__).parent / "readings.jsonl").read_text(encoding="utf-8").splitlines()
EXAMPLES = [msgspec.json.decode(line, type=Example) for line in LINES]


@pytest.mark.parametrize("protocol", ["exact", "lenient"])
def test_every_text_is_read_as_stated(protocol: str) -> None:
    wrong = []
    for example in EXAMPLES:
        is_read = protocol == "lenient" or example.rule != "lenient"
        expected = (example.rule, example.value) if is_read else (None, None)
        if (actual := example.read(protocol)) != expected:
            wrong.append((example.text, actual))
    assert wrong == []


def test_every_rule_has_examples_of_every_kind_of_answer() -> None:
    pairs = {(example.kind, example.rule) for example in EXAMPLES}
    assert pairs == {(kind, rule) for kind in ITEMS for rule in (*get_args(ReadingRule), None)}


# Digits of an object that never closes, and the value that they determine.
ENDLESS = {
    "3493." + "9" * 40_000: "3494", "-9.9" + "9" * 64: "-10", "0.12" + "0" * 64: "0.12",
    "0.12" + "0" * 40_000: "0.12", "7." + "0" * 9_000: "7", "0." + "0" * 9_000: "0",
    "0.12" + "0" * 9_000 + "He": "0.12", "0.12" + "0" * 63: None, "0.12" + "9" * 63: None,
    "0.12" + "8" * 9_000: None, "12" + "0" * 9_000: None, "12" + "9" * 9_000: None,
    "0.12" + "0" * 9_000 + "e5": None, "0.12" + "9" * 9_000 + " × 10": None,
    "1.5e-" + "9" * 64: None,
}  # fmt: skip


def test_endless_zeros_and_nines_determine_a_number() -> None:
    for digits, value in ENDLESS.items():
        for text in (f'{{"answer": {digits}', f'{{"answer": "{digits}'):
            score = score_exact(SUM, text_response(SUM, text))
            assert (score.parsed, score.rule) == (value, value and "unclosed"), digits[:12]


finite = st.decimals(allow_nan=False, allow_infinity=False, places=None).filter(
    lambda value: abs(value.adjusted()) < 300 and len(value.as_tuple().digits) <= 40
)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _notations(value: Decimal) -> list[str]:
    significand, _, power = f"{value:e}".partition("e")
    exponent = int(power)
    return [
        str(value),
        f"{value:f}",
        f"{value:,f}",
        f"{value:,f}".replace(",", "{,}"),
        f"{value:,f}".replace(",", "\u202f"),
        f"{value:e}".upper(),
        f"{value:f}".replace("-", "−"),
        f"{significand}e{exponent:+}",
        f"{significand} × 10^{exponent}",
        f"{significand}*10**{exponent}",
        f"{significand}·10{str(exponent).translate(_SUPERSCRIPT)}",
        rf"{significand} \times 10^{{{exponent}}}",
        format_number(value),
    ]


@given(finite)
def test_every_notation_of_a_number_has_its_value(value: Decimal) -> None:
    for text in _notations(value):
        assert read_number(text) == value, text


@given(st.integers(0, 10**300), st.integers(-300, 300), st.integers(1, 39))
def test_long_number_rounds_like_its_text(significand: int, exponent: int, digits: int) -> None:
    text = f"{significand}e{exponent}"
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    read = read_number(text)
    assert read is not None
    assert context.plus(read) == context.create_decimal(text)


def test_values_beyond_the_limits_are_not_read() -> None:
    numbers = ["1e1000000", "1e-1000000", "1e99999999999999999999", "1" + "0" * 999_988 + "e13"]
    for literal in numbers:
        for text in (literal, f'{{"answer": {literal}}}', f'{{"answer": "{literal}"}}'):
            assert parse_answer(text, "number") is None
    # A list of more than 10,000 numbers.
    for text in ("[" + "1," * 10_000 + "1]", '{"answer": [' + "1, " * 10_000 + "1]}"):
        assert parse_answer(text, "list") is None


@given(finite.map("{:f}".format), st.integers(0, 60))
def test_no_prefix_of_an_answer_is_read_as_another_number(number: str, length: int) -> None:
    for text in (
        f'{{"answer": {number}}}',
        f'{{"answer": "{number}"}}',
        f'{{"answer":{number}\n}}',
        f"\\boxed{{{number}}} is it",
        f"<answer>{number}</answer>",
    ):
        score = score_lenient(SUM, Response(item_id="", text=text[:length], finish_reason="length"))
        assert score.parsed in (None, format_number(Decimal(number)))


def test_only_the_end_of_a_very_long_text_is_read() -> None:
    answer = '{"answer": 5}'
    assert parse_answer("x " * MAX_CHARACTERS + answer, "number") == (Decimal(5), "object")
    assert parse_answer(answer + "x" * MAX_CHARACTERS, "number") is None
    # The rest of a number, or of a list, is not the answer.
    assert parse_answer("1" * (MAX_CHARACTERS + 1), "number") is None
    assert parse_answer("1, " * MAX_CHARACTERS + "1", "list") is None
    assert parse_answer('{"answer": 1' + "0" * MAX_CHARACTERS + "}", "number") is None
    text = "\nAnswer: 5".rjust(MAX_LENIENT_CHARACTERS, "x")
    assert score_lenient(SUM, text_response(SUM, text)).parsed == "5"
    assert score_lenient(SUM, text_response(SUM, "x" + text)).parsed is None
