"""Tokens of unusual questions, and answers from tokens."""

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


@each_row(__file__, "read_answers")
def test_answers_are_read_from_tokens(
    vocabulary: str, pieces: tuple[str | float, ...], text: str
) -> None:
    result = answer(VOCABULARIES[vocabulary], *pieces)
    assert result == f'{{"answer": {text}}}'
    assert any((parsed := parse_answer(result, kind)) and parsed.rule == "json" for kind in KINDS)
    cut_off = answer(VOCABULARIES[vocabulary], *pieces, ended=False)
    assert cut_off.startswith('{"answer": null, "said": "')


def test_answers_of_6000_digits_are_read() -> None:
    assert answer(VOCABULARIES["subword"], *["999"] * 2000) == f'{{"answer": {"9" * 6000}}}'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_round_trips_to_15_digits(value: float) -> None:
    parsed = parse_answer(answer(BITTOKEN, value), "number")
    assert parsed is not None and parsed.rule == "json"
    assert parsed.value == Decimal(f"{value:.15g}")


@each_row(__file__, "malformed_answers")
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
