"""The definition of the tokens of a question, by examples written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench.bittoken.lexicon import Lexicon
from bench.bittoken.question import encode, pieces
from bench.bittoken.vocabulary import NUM, Vocabulary, spelled
from bench.errors import BadInput
from bench.tasks import TASKS
from bench.tasks.phrasing import Question, prompts
from tests.bittoken.small import unsigned_vocabulary

N = "<|num|>"
WAYS = {
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


def read(question: Question, way: str) -> tuple[list[str], list[float]]:
    """The tokens by name, and the values of the number tokens."""
    vocabulary = WAYS[way]
    encoded = encode(question, Lexicon.of(vocabulary))
    assert encoded.tokens.dtype == np.int64
    assert len(encoded.codes) == len(encoded.tokens)
    names = [vocabulary.tokens[token] for token in encoded.tokens]
    if vocabulary.encoding is None:
        assert encoded.codes.shape[1] == 0
        return names, []
    is_number = encoded.tokens == vocabulary.ids[NUM]
    assert not encoded.codes[~is_number].any()
    return names, vocabulary.encoding.value(encoded.codes[is_number]).tolist()


def names(joined: str) -> list[str]:
    """Token names that stand between bars."""
    return [N if name == "n" else name for name in joined.replace(N, "n").split("|")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "^"])
def test_two_operands_stand_around_their_operator(operator: str, way: str) -> None:
    said, values = read(Question("", operator, ("-1234.05", "6000")), way)
    middle = names(BINARY[way].format(f" {operator} "))
    assert said == ["<|bos|>", *middle, "<|eoq|>"]
    signed = {"bittoken": [-1234.05, 6000.0], "unsigned": [1234.05, 6000.0]}
    assert values == signed.get(way, [])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("operator", TOKENS)
def test_a_list_stands_in_brackets_behind_its_task(operator: str, way: str) -> None:
    said, values = read(Question("", operator, ("7", "-0.25", "10000")), way)
    assert said == ["<|bos|>", TOKENS[operator], *names(LISTS[way]), "<|eoq|>"]
    signed = {"bittoken": [7.0, -0.25, 10000.0], "unsigned": [7.0, 0.25, 10000.0]}
    assert values == signed.get(way, [])


@pytest.mark.parametrize("way", WAYS)
def test_an_intervals_reference_stands_before_its_boundaries(way: str) -> None:
    said, values = read(Question("", "interval", ("-1.5", "-3", "42.1259")), way)
    assert said == ["<|bos|>", "<|intva|>", *names(INTERVALS[way]), "<|eoq|>"]
    signed = {"bittoken": [-1.5, -3.0, 42.1259], "unsigned": [1.5, 3.0, 42.1259]}
    assert values == signed.get(way, [])


def test_digits_are_grouped_from_the_left_on_both_sides_of_the_point() -> None:
    assert spelled("-1234567.8901", 3) == ["-", "123", "456", "7", ".", "890", "1"]
    assert spelled("1234567.8901", 1) == list("1234567.8901")


def test_numbers_are_spelled_as_printed() -> None:
    asked = Question("", "+", ("5.0", "0.10"))
    assert pieces(asked, WAYS["digit"])[1:-1] == ["5", ".", "0", " + ", "0", ".", "1", "0"]
    asked = Question("", "+", ("1.5e3", "2e-3"))
    assert pieces(asked, WAYS["subword"])[1:-1] == ["150", "0", " + ", "0", ".", "002"]


def test_a_zero_has_no_sign_of_its_own() -> None:
    assert pieces(Question("", "+", ("-0", "0")), WAYS["unsigned"])[1:-1] == [0.0, " + ", 0.0]


def test_every_operator_of_the_benchmark_has_a_layout() -> None:
    for task in TASKS.values():
        for operator in task.operators:
            asked = prompts().read(prompts().phrase(task.name, operator, ("1", "2")))
            for vocabulary in WAYS.values():
                assert pieces(asked, vocabulary)[0] == "<|bos|>"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Question("", "sqrt", ("1", "2")), "reads 'sqrt' of 2 numbers"),
        (Question("", "+", ("1", "2", "3")), "reads '\\+' of 3 numbers"),
        (Question("", "mean", ()), "reads 'mean' of 0 numbers"),
        (Question("", "interval", ("1",)), "reads 'interval' of 1 numbers"),
        (Question("", "+", ("1", "two")), "'two' is not a decimal number"),
        (Question("", "+", ("1", "inf")), "'inf' is not a finite number"),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_what_has_no_layout_is_bad_input(asked: Question, message: str, way: str) -> None:
    with pytest.raises(BadInput, match=message):
        encode(asked, Lexicon.of(WAYS[way]))
