from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bittoken.answer import answer_json, said
from bench.bittoken.lexicon import Lexicon
from bench.bittoken.vocabulary import Vocabulary, spelled
from bench.scoring.answers import parse_answer
from bench.tasks.base import AnswerKind
from tests.bittoken.small import unsigned_vocabulary

BITTOKEN, SUBWORD = Vocabulary("bittoken"), Vocabulary("subword")
KINDS: tuple[AnswerKind, ...] = ("number", "letter", "list")


def answered(vocabulary: Vocabulary, *pieces: str | float, ended: bool = True) -> str:
    """The JSON text of an answer of these tokens; a float is a number token."""
    lexicon = Lexicon.of(vocabulary)
    values = [piece for piece in pieces if isinstance(piece, float)]
    ids = [
        lexicon.number if isinstance(piece, float) else vocabulary.ids[piece] for piece in pieces
    ]
    return answer_json(said([*ids, lexicon.end] if ended else ids, values, lexicon), ended)


def judged(text: str, kind: AnswerKind) -> object:
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
def test_a_number_is_plain_decimal_of_15_digits(value: float, text: str) -> None:
    assert answered(BITTOKEN, value) == f'{{"answer": {text}}}'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_is_read_back_to_15_digits(value: float) -> None:
    text = answered(BITTOKEN, value)
    parsed = parse_answer(text, "number")
    assert parsed is not None and parsed.rule == 1
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
def test_spelled_answers_are_read_by_the_first_rule(
    pieces: tuple[str, ...], kind: AnswerKind, value: object
) -> None:
    parsed = parse_answer(answered(SUBWORD, *pieces), kind)
    assert parsed is not None
    assert (parsed.value, parsed.rule) == (value, 1)


def test_lists_and_signs_around_number_tokens() -> None:
    assert answered(BITTOKEN, "[", 1.5, ", ", -2.0, "]") == '{"answer": [1.5, -2]}'
    unsigned = unsigned_vocabulary()
    assert answered(unsigned, "-", 2.5) == '{"answer": -2.5}'
    assert answered(unsigned, "[", "-", 2.5, ", ", 3.0, "]") == '{"answer": [-2.5, 3]}'


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
def test_what_is_malformed_is_no_answer_of_any_kind(pieces: tuple[str | float, ...]) -> None:
    text = answered(BITTOKEN, *pieces)
    assert [judged(text, kind) for kind in KINDS] == [None] * 3
    assert text.startswith('{"answer": null, "said": "')


def test_nothing_said_is_an_empty_text() -> None:
    assert answered(BITTOKEN) == ""


@pytest.mark.parametrize("pieces", [("12",), ("A",), ("[", "1", "]")], ids=str)
def test_an_answer_that_was_cut_off_does_not_count(pieces: tuple[str, ...]) -> None:
    text = answered(SUBWORD, *pieces, ended=False)
    assert [judged(text, kind) for kind in KINDS] == [None] * 3


@given(
    st.lists(
        st.integers(0, len(BITTOKEN.own) + 3).filter(lambda n: n != BITTOKEN.ids["<|eos|>"]),
        max_size=8,
    ),
    st.lists(st.floats(), min_size=8, max_size=8),
)
def test_no_tokens_at_all_raise(tokens: list[int], values: list[float]) -> None:
    """Ids beyond the vocabulary included, as a padded embedding can produce them."""
    text = answer_json(said(tokens, values, Lexicon.of(BITTOKEN)), ended=True)
    for kind in KINDS:
        parse_answer(text, kind)


@given(st.integers(-(10**400), 10**400), st.integers(0, 300))
def test_a_spelled_number_of_any_length_keeps_all_its_digits(number: int, places: int) -> None:
    text = f"{number}.{'4' * places}" if places else str(number)
    found = answered(SUBWORD, *spelled(text, 3))
    assert found == f'{{"answer": {"0" if text == "-0" else text}}}'


def test_a_run_of_digits_beyond_pythons_limit_is_still_an_answer() -> None:
    text = answered(SUBWORD, *["999"] * 2000)
    assert text == f'{{"answer": {"9" * 6000}}}'
    assert judged(text, "number") is not None
