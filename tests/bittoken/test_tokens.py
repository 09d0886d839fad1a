"""Tokens of unusual questions, and answers from tokens."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittoken.tokens import Vocabulary, answer_json, encode_questions
from numbench.errors import BadInput
from numbench.scoring.answer_parser import parse_answer
from numbench.tasks.base import AnswerKind
from numbench.tasks.prompts import Question
from tests.bittoken.small import unsigned_vocabulary
from tests.support.case_tables import each_row

VOCABULARIES = {
    "bittoken": Vocabulary("bittoken"),
    "unsigned": unsigned_vocabulary(),
    "digit": Vocabulary("digit"),
    "subword": Vocabulary("subword"),
}
BITTOKEN = VOCABULARIES["bittoken"]
KINDS: tuple[AnswerKind, ...] = ("number", "letter", "list")


@each_row(__file__, "tokens_of_numbers")
def test_numbers_that_are_in_no_dataset_have_these_tokens(
    name: str, expected: tuple[str, str]
) -> None:
    """The tokens of questions of the datasets are in contract/."""
    vocabulary = VOCABULARIES[name]
    questions = [Question("", "+", ("5.0", "1.5e3")), Question("", "-", ("-0", "-1234567.8901"))]
    samples = encode_questions(questions, vocabulary)
    for tokens, length, text in zip(samples.tokens, samples.lengths, expected, strict=True):
        pieces = [vocabulary.tokens[token] for token in tokens[:length]]
        assert "|".join(pieces).replace("<|num|>", "n") == f"<|bos|>|{text}|<|eoq|>"


@pytest.mark.parametrize("name", ["unsigned", "subword"])
@each_row(__file__, "unsupported_questions")
def test_unsupported_questions_are_bad_input(
    operator: str, operands: tuple[str, ...], message: str, name: str
) -> None:
    with pytest.raises(BadInput, match=message):
        encode_questions([Question("", operator, operands)], VOCABULARIES[name])


def answer(vocabulary: Vocabulary, *pieces: str | float, ended: bool = True) -> str:
    """Return the JSON text of an answer with these tokens; a float is a number token."""
    values = [piece for piece in pieces if isinstance(piece, float)]
    ids = [vocabulary.ids["<|num|>" if isinstance(p, float) else p] for p in pieces]
    return answer_json([*ids, vocabulary.eos_id] if ended else ids, values, vocabulary)


@pytest.mark.parametrize(
    ("vocabulary", "pieces", "text"),
    [
        ("bittoken", (0.1,), "0.1"),
        ("bittoken", (0.1 + 0.2,), "0.3"),
        ("bittoken", (2 / 3,), "0.666666666666667"),
        ("bittoken", (1e21,), "1000000000000000000000"),
        ("bittoken", (1.25e-7,), "0.000000125"),
        ("bittoken", (-0.0,), "0"),
        ("bittoken", ("B",), '"B"'),
        ("bittoken", ("[", 1.5, ", ", -2.0, "]"), "[1.5, -2]"),
        ("unsigned", ("-", 2.5), "-2.5"),
        ("unsigned", ("[", "-", 2.5, ", ", 3.0, "]"), "[-2.5, 3]"),
        ("subword", ("-", "123", "4", ".", "05"), "-1234.05"),
        ("subword", ("007",), "7"),
        ("subword", ("[", "-", "1", ", ", "2", ".", "5", "]"), "[-1, 2.5]"),
        pytest.param("subword", ("999",) * 2000, "9" * 6000, id="6,000 digits"),
    ],
)
def test_answers_are_read_from_tokens(
    vocabulary: str, pieces: tuple[str | float, ...], text: str
) -> None:
    result = answer(VOCABULARIES[vocabulary], *pieces)
    assert result == f'{{"answer": {text}}}'
    assert any((parsed := parse_answer(result, kind)) and parsed.rule == "json" for kind in KINDS)
    cut_off = answer(VOCABULARIES[vocabulary], *pieces, ended=False)
    assert cut_off.startswith('{"answer": null, "said": "')


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_round_trips_to_15_digits(value: float) -> None:
    parsed = parse_answer(answer(BITTOKEN, value), "number")
    assert parsed is not None and parsed.rule == "json"
    assert parsed.value == Decimal(f"{value:.15g}")


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
        ("[", 1.0, ", ", math.nan, "]"),
        ("[", 1.0),
        ("[", "]"),
        (1.0, ", ", 2.0),
        ("[", 1.0, 2.0, "]"),
        ("-",),
        ("5", "."),
        ("A", "B"),
        ("<|pad|>", 1.0),
        (1.0, " + ", 2.0),
    ],
    ids=str,
)
def test_malformed_answers_are_null(pieces: tuple[str | float, ...]) -> None:
    text = answer(BITTOKEN, *pieces)
    assert [parse_answer(text, kind) for kind in KINDS] == [None] * 3
    assert text.startswith('{"answer": null, "said": "')
    assert answer(BITTOKEN) == ""


@given(
    st.lists(st.integers(0, len(BITTOKEN) + 3), max_size=8),
    st.lists(st.floats(), min_size=8, max_size=8),
)
def test_arbitrary_tokens_never_raise(tokens: list[int], values: list[float]) -> None:
    """Including ids outside the vocabulary, which a padded embedding can produce."""
    for kind in KINDS:
        parse_answer(answer_json(tokens, values, BITTOKEN), kind)
