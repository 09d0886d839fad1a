"""Tokens of questions, compared with examples written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittoken.token_ids import TokenIds
from bittoken.tokenizer import encode_question, question_pieces
from bittoken.vocabulary import NUM, Vocabulary, tokenize_decimal
from numbench.errors import BadInput
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import Question, load_prompt_set
from tests.bittoken.small import unsigned_vocabulary

N = "<|num|>"
VOCABULARIES = {
    "bittoken": Vocabulary("bittoken"),
    "unsigned": unsigned_vocabulary(),
    "digit": Vocabulary("digit"),
    "subword": Vocabulary("subword"),
}
BINARY = {
    "bittoken": f"{N}|{{}}|{N}",
    "unsigned": f"-|{N}|{{}}|{N}",
    "digit": "-|1|2|3|4|.|0|5|{}|6|0|0|0",
    "subword": "-|123|4|.|05|{}|600|0",
}
LISTS = {
    "bittoken": f"[|{N}|, |{N}|, |{N}|]",
    "unsigned": f"[|{N}|, |-|{N}|, |{N}|]",
    "digit": "[|7|, |-|0|.|2|5|, |1|0|0|0|0|]",
    "subword": "[|7|, |-|0|.|25|, |100|00|]",
}
INTERVALS = {
    "bittoken": f"{N}|[|{N}|, |{N}|]",
    "unsigned": f"-|{N}|[|-|{N}|, |{N}|]",
    "digit": "-|1|.|5|[|-|3|, |4|2|.|1|2|5|9|]",
    "subword": "-|1|.|5|[|-|3|, |42|.|125|9|]",
}
TOKENS = {
    "minimum": "<|min|>",
    "maximum": "<|max|>",
    "ascending": "<|asc|>",
    "descending": "<|desc|>",
    "mean": "<|mean|>",
    "std": "<|std|>",
}


def encode(question: Question, vocabulary_name: str) -> tuple[list[str], list[float]]:
    """Return the tokens by name, and the values of the number tokens."""
    vocabulary = VOCABULARIES[vocabulary_name]
    encoded = encode_question(question, TokenIds.from_vocabulary(vocabulary))
    assert encoded.tokens.dtype == np.int64
    assert len(encoded.codes) == len(encoded.tokens)
    names = [vocabulary.tokens[token] for token in encoded.tokens]
    if vocabulary.encoding is None:
        assert encoded.codes.shape[1] == 0
        return names, []
    is_number = encoded.tokens == vocabulary.ids[NUM]
    assert not encoded.codes[~is_number].any()
    return names, vocabulary.encoding.decode(encoded.codes[is_number]).tolist()


def names(joined: str) -> list[str]:
    """Return token names separated by bars."""
    return [N if name == "n" else name for name in joined.replace(N, "n").split("|")]


@pytest.mark.parametrize("vocabulary_name", VOCABULARIES)
@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "^"])
def test_binary_questions_have_infix_operators(operator: str, vocabulary_name: str) -> None:
    tokens, values = encode(Question("", operator, ("-1234.05", "6000")), vocabulary_name)
    expected = names(BINARY[vocabulary_name].format(f" {operator} "))
    assert tokens == ["<|bos|>", *expected, "<|eoq|>"]
    signed = {"bittoken": [-1234.05, 6000.0], "unsigned": [1234.05, 6000.0]}
    assert values == signed.get(vocabulary_name, [])


@pytest.mark.parametrize("vocabulary_name", VOCABULARIES)
@pytest.mark.parametrize("operator", TOKENS)
def test_list_questions_have_brackets_after_their_operator(
    operator: str, vocabulary_name: str
) -> None:
    tokens, values = encode(Question("", operator, ("7", "-0.25", "10000")), vocabulary_name)
    assert tokens == ["<|bos|>", TOKENS[operator], *names(LISTS[vocabulary_name]), "<|eoq|>"]
    signed = {"bittoken": [7.0, -0.25, 10000.0], "unsigned": [7.0, 0.25, 10000.0]}
    assert values == signed.get(vocabulary_name, [])


@pytest.mark.parametrize("vocabulary_name", VOCABULARIES)
def test_interval_questions_have_the_reference_before_the_boundaries(vocabulary_name: str) -> None:
    tokens, values = encode(Question("", "interval", ("-1.5", "-3", "42.1259")), vocabulary_name)
    assert tokens == ["<|bos|>", "<|intva|>", *names(INTERVALS[vocabulary_name]), "<|eoq|>"]
    signed = {"bittoken": [-1.5, -3.0, 42.1259], "unsigned": [1.5, 3.0, 42.1259]}
    assert values == signed.get(vocabulary_name, [])


PLAIN = {
    "bittoken": f": |A| |{N}| |B| |{N}| |C",
    "unsigned": f": |A| |-|{N}| |B| |{N}| |C",
    "digit": ": |A| |-|3| |B| |4|2|.|1|2|5|9| |C",
    "subword": ": |A| |-|3| |B| |42|.|125|9| |C",
}


@pytest.mark.parametrize("vocabulary_name", VOCABULARIES)
def test_plain_lists_have_no_brackets(vocabulary_name: str) -> None:
    vocabulary = VOCABULARIES[vocabulary_name]
    question = Question("", "descending", ("7", "-0.25", "10000"))
    pieces = question_pieces(question, vocabulary, "plain")
    bracketed = question_pieces(question, vocabulary)
    assert pieces == [piece for piece in bracketed if piece not in ("[", "]")]
    assert pieces[:2] == ["<|bos|>", "<|desc|>"]
    binary = Question("", "-", ("1", "-2.5"))
    assert question_pieces(binary, vocabulary, "plain") == question_pieces(binary, vocabulary)


@pytest.mark.parametrize("vocabulary_name", VOCABULARIES)
def test_plain_intervals_have_a_letter_for_each_choice(vocabulary_name: str) -> None:
    question = Question("", "interval", ("1", "-3", "42.1259"))
    pieces = question_pieces(question, VOCABULARIES[vocabulary_name], "plain")
    shown = [N if isinstance(piece, float) else piece for piece in pieces]
    assert shown[:2] == ["<|bos|>", "<|intva|>"] and shown[2] in (N, "1")
    assert shown[3:] == [*names(PLAIN[vocabulary_name]), "<|eoq|>"]


def test_plain_intervals_have_at_most_six_choices() -> None:
    question = Question("", "interval", tuple("0123456"))
    with pytest.raises(BadInput, match=r"7 intervals is not supported .* at most 6"):
        question_pieces(question, VOCABULARIES["bittoken"], "plain")
    six = question._replace(operands=tuple("012345"))
    assert question_pieces(six, VOCABULARIES["bittoken"], "plain")[-2:] == ["F", "<|eoq|>"]


@given(
    st.sampled_from(["+", "-", "maximum", "interval", "ascending"]),
    st.lists(st.decimals(-(10**6), 10**6, places=3).map(str), min_size=2, max_size=5),
    st.sampled_from(sorted(VOCABULARIES)),
)
def test_each_piece_of_a_network_of_numbench_is_one_token(
    operator: str, operands: list[str], vocabulary_name: str
) -> None:
    """The longest match never joins or splits the pieces of the vocabulary."""
    question = Question("", operator, tuple(operands[:2] if operator in "+-" else operands))
    vocabulary = VOCABULARIES[vocabulary_name]
    pieces = question_pieces(question, vocabulary)
    encoded = encode_question(question, TokenIds.from_vocabulary(vocabulary))
    ids = [vocabulary.ids[NUM if isinstance(piece, float) else piece] for piece in pieces]
    assert encoded.tokens.tolist() == ids


def test_digits_are_grouped_from_the_left_before_and_after_the_point() -> None:
    assert tokenize_decimal("-1234567.8901", 3) == ["-", "123", "456", "7", ".", "890", "1"]
    assert tokenize_decimal("1234567.8901", 1) == list("1234567.8901")


def test_numbers_written_as_text_keep_their_printed_form() -> None:
    question = Question("", "+", ("5.0", "0.10"))
    assert question_pieces(question, VOCABULARIES["digit"])[1:-1] == [
        "5",
        ".",
        "0",
        " + ",
        "0",
        ".",
        "1",
        "0",
    ]
    question = Question("", "+", ("1.5e3", "2e-3"))
    assert question_pieces(question, VOCABULARIES["subword"])[1:-1] == [
        "150",
        "0",
        " + ",
        "0",
        ".",
        "002",
    ]


def test_negative_zero_has_no_sign_token() -> None:
    assert question_pieces(Question("", "+", ("-0", "0")), VOCABULARIES["unsigned"])[1:-1] == [
        0.0,
        " + ",
        0.0,
    ]


def test_every_operator_of_the_benchmark_is_supported() -> None:
    for task in PAPER_TASKS.values():
        for operator in task.operators:
            question = load_prompt_set().parse_question(
                load_prompt_set().format_question(task.name, operator, ("1", "2"))
            )
            for vocabulary in VOCABULARIES.values():
                assert question_pieces(question, vocabulary)[0] == "<|bos|>"


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (Question("", "sqrt", ("1", "2")), "operator 'sqrt' with 2 operands is not supported"),
        (Question("", "+", ("1", "2", "3")), "operator '\\+' with 3 operands is not supported"),
        (Question("", "mean", ()), "operator 'mean' with 0 operands is not supported"),
        (Question("", "interval", ("1",)), "operator 'interval' with 1 operands is not supported"),
        (Question("", "+", ("1", "two")), "'two' is not a decimal number"),
        (Question("", "+", ("1", "inf")), "'inf' is not a finite number"),
    ],
)
@pytest.mark.parametrize("vocabulary_name", VOCABULARIES)
def test_unsupported_questions_are_bad_input(
    question: Question, message: str, vocabulary_name: str
) -> None:
    with pytest.raises(BadInput, match=message):
        encode_question(question, TokenIds.from_vocabulary(VOCABULARIES[vocabulary_name]))
