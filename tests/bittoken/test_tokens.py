"""Tokens of questions, compared with examples written by hand, and answers from tokens."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittoken.tokens import Samples, Vocabulary, answer_json, encode_questions
from numbench.errors import BadInput
from numbench.scoring.answer_parser import parse_answer
from numbench.tasks.base import AnswerKind
from numbench.tasks.prompts import Question
from tests.bittoken.small import unsigned_vocabulary

VOCABULARIES = {
    "bittoken": Vocabulary("bittoken"),
    "unsigned": unsigned_vocabulary(),
    "digit": Vocabulary("digit"),
    "subword": Vocabulary("subword"),
}
BITTOKEN, SUBWORD = VOCABULARIES["bittoken"], VOCABULARIES["subword"]
KINDS: tuple[AnswerKind, ...] = ("number", "letter", "list")
EXAMPLES = {
    Question("", "*", ("-1234.05", "6000")): {
        "bittoken": "n| * |n",
        "unsigned": "-|n| * |n",
        "digit": "-|1|2|3|4|.|0|5| * |6|0|0|0",
        "subword": "-|123|4|.|05| * |600|0",
    },
    Question("", "descending", ("7", "-0.25", "10000")): {
        "bittoken": "<|desc|>|[|n|, |n|, |n|]",
        "unsigned": "<|desc|>|[|n|, |-|n|, |n|]",
        "digit": "<|desc|>|[|7|, |-|0|.|2|5|, |1|0|0|0|0|]",
        "subword": "<|desc|>|[|7|, |-|0|.|25|, |100|00|]",
    },
    Question("", "interval", ("-1.5", "-3", "42.1259")): {
        "bittoken": "<|intva|>|n|[|n|, |n|]",
        "unsigned": "<|intva|>|-|n|[|-|n|, |n|]",
        "digit": "<|intva|>|-|1|.|5|[|-|3|, |4|2|.|1|2|5|9|]",
        "subword": "<|intva|>|-|1|.|5|[|-|3|, |42|.|125|9|]",
    },
    # Text keeps the printed form, except for exponents; zero has no sign token.
    Question("", "+", ("5.0", "1.5e3")): {
        "bittoken": "n| + |n",
        "unsigned": "n| + |n",
        "digit": "5|.|0| + |1|5|0|0",
        "subword": "5|.|0| + |150|0",
    },
    Question("", "-", ("-0", "1234567.8901")): {
        "bittoken": "n| - |n",
        "unsigned": "n| - |n",
        "digit": "-|0| - |1|2|3|4|5|6|7|.|8|9|0|1",
        "subword": "-|0| - |123|456|7|.|890|1",
    },
}


def names(samples: Samples, row: int, vocabulary: Vocabulary) -> str:
    tokens = samples.tokens[row, : samples.lengths[row]]
    return "|".join(vocabulary.tokens[token].replace("<|num|>", "n") for token in tokens)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_questions_have_the_tokens_of_the_examples(name: str) -> None:
    vocabulary = VOCABULARIES[name]
    samples = encode_questions(list(EXAMPLES), vocabulary)
    assert not samples.is_target.any()
    for row, (question, expected) in enumerate(EXAMPLES.items()):
        assert names(samples, row, vocabulary) == f"<|bos|>|{expected[name]}|<|eoq|>"
        if vocabulary.encoding is not None:
            values = [float(operand) for operand in question.operands]
            is_number = samples.tokens[row] == vocabulary.number_id
            codes = samples.codes[row, is_number]
            signed = values if vocabulary.encoding.signed else list(map(abs, values))
            assert samples.values[row, is_number].tolist() == signed
            assert vocabulary.encoding.decode(codes).tolist() == signed
        (alone,) = encode_questions([question], vocabulary).tokens.tolist()
        assert alone == samples.tokens[row, : samples.lengths[row]].tolist()


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize(
    ("operator", "operands", "message"),
    [
        ("sqrt", ("1", "2"), "operator 'sqrt' with 2 operands is not supported"),
        ("+", ("1", "2", "3"), "operator '\\+' with 3 operands is not supported"),
        ("mean", (), "operator 'mean' with 0 operands is not supported"),
        ("interval", ("1",), "operator 'interval' with 1 operands is not supported"),
        ("+", ("1", "two"), "'two' is not a decimal number"),
        ("+", ("1", "inf"), "is not a finite number"),
    ],
)
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
