from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittoken.token_ids import TokenIds
from bittoken.tokenizer import answer_json, decode_tokens
from bittoken.vocabulary import Vocabulary, tokenize_decimal
from numbench.scoring.answer_parser import parse_answer
from numbench.tasks.base import AnswerKind
from tests.bittoken.small import unsigned_vocabulary

BITTOKEN, SUBWORD = Vocabulary("bittoken"), Vocabulary("subword")
KINDS: tuple[AnswerKind, ...] = ("number", "letter", "list")


def answer_text(vocabulary: Vocabulary, *pieces: str | float, ended: bool = True) -> str:
    """Return the JSON text of an answer with these tokens; a float is a number token."""
    token_ids = TokenIds.from_vocabulary(vocabulary)
    values = [piece for piece in pieces if isinstance(piece, float)]
    ids = [
        token_ids.number_id if isinstance(piece, float) else vocabulary.ids[piece]
        for piece in pieces
    ]
    return answer_json(
        decode_tokens([*ids, token_ids.eos_id] if ended else ids, values, token_ids), ended
    )


def parsed_value(text: str, kind: AnswerKind) -> object:
    parsed = parse_answer(text, kind)
    return None if parsed is None else parsed.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (0.1 + 0.2, "0.3"),
        (2 / 3, "0.666666666666667"),
        (1e21, "1000000000000000000000"),
        (1.25e-7, "0.000000125"),
        (-0.0, "0"),
        (123456789012345.6, "123456789012346"),
    ],
)
def test_number_tokens_are_written_as_plain_decimals_of_15_digits(value: float, text: str) -> None:
    assert answer_text(BITTOKEN, value) == f'{{"answer": {text}}}'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_round_trips_to_15_digits(value: float) -> None:
    text = answer_text(BITTOKEN, value)
    parsed = parse_answer(text, "number")
    assert parsed is not None and parsed.rule == "json"
    assert parsed.value == Decimal(f"{value:.15g}")
    assert "e" not in text.removeprefix('{"answer"')


@pytest.mark.parametrize(
    ("pieces", "kind", "value"),
    [
        (("-", "123", "4", ".", "05"), "number", Decimal("-1234.05")),
        (("007",), "number", Decimal(7)),
        (("0", ".", "10"), "number", Decimal("0.1")),
        (("B",), "letter", "B"),
        (("[", "12", "]"), "list", (Decimal(12),)),
        (("[", "-", "1", ", ", "2", ".", "5", "]"), "list", (Decimal(-1), Decimal("2.5"))),
    ],
)
def test_digit_tokens_have_the_requested_format(
    pieces: tuple[str, ...], kind: AnswerKind, value: object
) -> None:
    parsed = parse_answer(answer_text(SUBWORD, *pieces), kind)
    assert parsed is not None
    assert (parsed.value, parsed.rule) == (value, "json")


def test_lists_and_signs_with_number_tokens() -> None:
    assert answer_text(BITTOKEN, "[", 1.5, ", ", -2.0, "]") == '{"answer": [1.5, -2]}'
    unsigned = unsigned_vocabulary()
    assert answer_text(unsigned, "-", 2.5) == '{"answer": -2.5}'
    assert answer_text(unsigned, "[", "-", 2.5, ", ", 3.0, "]") == '{"answer": [-2.5, 3]}'


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("-2.5", "-2.5"),
        ("B", '"B"'),
        ("3, -1.5", "[3, -1.5]"),
        ("3,-1.5, 007", "[3, -1.5, 7]"),
        ("[3, 1]", "null"),
        ("3, ", "null"),
        ("3, 1 2", "null"),
        ("A, B", "null"),
    ],
)
def test_plain_lists_have_no_brackets(text: str, answer: str) -> None:
    said = f', "said": {json.dumps(text.strip())}' if answer == "null" else ""
    assert answer_json(text, True, "plain") == f'{{"answer": {answer}{said}}}'
    assert answer_json(text, False, "plain").startswith('{"answer": null')


@pytest.mark.parametrize(
    "pieces",
    [
        (1.0, 2.0),
        (1.0, "5"),
        ("5", 1.0),
        (1.0, ".", "5"),
        (".", 5.0),
        ("-", -1.0),
        (1.0, "-", 2.0),
        (math.inf,),
        (math.nan,),
        (-math.inf,),
        ("[", 1.0, ", ", math.nan, "]"),
        ("[", 1.0),
        ("[", "]"),
        ("[", 1.0, ", ", "]"),
        (1.0, ", ", 2.0),
        ("[", 1.0, 2.0, "]"),
        ("-",),
        ("5", "."),
        ("A", "B"),
        ("<|pad|>", 1.0),
        ("<|eoq|>",),
        (1.0, " + ", 2.0),
    ],
    ids=str,
)
def test_malformed_answers_are_null(pieces: tuple[str | float, ...]) -> None:
    text = answer_text(BITTOKEN, *pieces)
    assert [parsed_value(text, kind) for kind in KINDS] == [None] * 3
    assert text.startswith('{"answer": null, "said": "')


def test_empty_answers_are_empty_texts() -> None:
    assert answer_text(BITTOKEN) == ""


@pytest.mark.parametrize("pieces", [("12",), ("A",), ("[", "1", "]")], ids=str)
def test_answers_that_were_cut_off_are_null(pieces: tuple[str, ...]) -> None:
    text = answer_text(SUBWORD, *pieces, ended=False)
    assert [parsed_value(text, kind) for kind in KINDS] == [None] * 3


@given(
    st.lists(
        st.integers(0, len(BITTOKEN.base_tokens) + 3).filter(
            lambda n: n != BITTOKEN.ids["<|eos|>"]
        ),
        max_size=8,
    ),
    st.lists(st.floats(), min_size=8, max_size=8),
)
def test_arbitrary_tokens_never_raise(tokens: list[int], values: list[float]) -> None:
    """Including ids outside the vocabulary, which a padded embedding can produce."""
    text = answer_json(
        decode_tokens(tokens, values, TokenIds.from_vocabulary(BITTOKEN)), ended=True
    )
    for kind in KINDS:
        parse_answer(text, kind)


@given(st.integers(-(10**400), 10**400), st.integers(0, 300))
def test_numbers_written_as_text_keep_all_their_digits(number: int, places: int) -> None:
    text = f"{number}.{'4' * places}" if places else str(number)
    result = answer_text(SUBWORD, *tokenize_decimal(text, 3))
    assert result == f'{{"answer": {"0" if text == "-0" else text}}}'


def test_integers_beyond_the_conversion_limit_of_python_are_valid_answers() -> None:
    text = answer_text(SUBWORD, *["999"] * 2000)
    assert text == f'{{"answer": {"9" * 6000}}}'
    assert parsed_value(text, "number") is not None
