"""Tokens and codes of samples, compared with an independent definition of the layout."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bittoken.data.packing import Samples, concatenate_samples
from bittoken.data.question_sources import GeneratedSource
from bittoken.data.tokenization import tokenize_items, tokenize_numbers
from bittoken.encodings.bittoken import BitToken
from bittoken.vocabulary import Vocabulary
from numbench.tasks import PAPER_TASKS

Token = tuple[str, str | None]
"""A token, and the text of the number if it is a number token."""

LIST_TOKENS = {
    "minimum": "<|min|>",
    "maximum": "<|max|>",
    "ascending": "<|asc|>",
    "descending": "<|desc|>",
    "interval": "<|intva|>",
    "mean": "<|mean|>",
    "std": "<|std|>",
}


class Unsigned(BitToken):
    """An encoding of absolute values with a separate sign token, as FoNE."""

    signed = False

    def encode(self, values: np.ndarray) -> np.ndarray:
        return super().encode(np.abs(values))


def unsigned() -> Vocabulary:
    vocabulary = Vocabulary("bittoken")
    vocabulary.encoding = Unsigned()
    return vocabulary


VOCABULARIES = {
    "bittoken": Vocabulary("bittoken"),
    "digit": Vocabulary("digit"),
    "subword": Vocabulary("subword"),
    "unsigned": unsigned(),
}


def number_tokens(text: str, encoding: str) -> list[Token]:
    """Return the tokens of one number, by definition."""
    if encoding == "bittoken":
        return [("<|num|>", text)]
    if encoding == "unsigned":
        return [*([("-", None)] if text[0] == "-" else []), ("<|num|>", text.lstrip("-"))]
    max_digits = {"digit": 1, "subword": 3}[encoding]
    return [(part, None) for part in re.findall(rf"[0-9]{{1,{max_digits}}}|[-.]", text)]


def list_tokens(texts: list[str], encoding: str) -> list[Token]:
    tokens: list[Token] = [("[", None)]
    for index, text in enumerate(texts):
        tokens += [(", ", None)] * (index > 0) + number_tokens(text, encoding)
    return [*tokens, ("]", None)]


def question_tokens(item: dict[str, Any], encoding: str) -> list[Token]:
    operator, operands = item["operator"], item["operands"]
    if operator in LIST_TOKENS:
        reference, rest = [], operands
        if operator == "interval":
            reference, rest = number_tokens(operands[0], encoding), operands[1:]
        body = [(LIST_TOKENS[operator], None), *reference, *list_tokens(rest, encoding)]
    else:
        a, b = operands
        body = [*number_tokens(a, encoding), (f" {operator} ", None), *number_tokens(b, encoding)]
    return [("<|bos|>", None), *body, ("<|eoq|>", None)]


def answer_tokens(item: dict[str, Any], encoding: str) -> list[Token]:
    answer = item["answer"]
    if isinstance(answer, list):
        body = list_tokens(answer, encoding)
    else:
        body = [(answer, None)] if answer in "ABCDEF" else number_tokens(answer, encoding)
    return [*body, ("<|eos|>", None)]


def code(text: str | None) -> int:
    """Return the bits of the float64 nearest to a decimal, as an integer."""
    if text is None:
        return 0
    bits: int = struct.unpack(">q", struct.pack(">d", float(text)))[0]
    return bits


def rows(samples: Samples) -> Iterator[tuple[list[int], list[list[int]], int]]:
    ends = np.cumsum(samples.lengths)
    for end, length, prompt_length in zip(
        ends, samples.lengths, samples.prompt_lengths, strict=True
    ):
        part = slice(end - length, end)
        yield samples.tokens[part].tolist(), samples.codes[part].tolist(), int(prompt_length)


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    """Return 600 items of each task, with few and with many digits."""
    return {
        task: pa.concat_tables(
            GeneratedSource(task, size, False, "train", seed=size).block(0).slice(0, 300)
            for size in (2, 15)
        )
        for task in PAPER_TASKS
    }


@pytest.mark.parametrize("encoding", VOCABULARIES)
@pytest.mark.parametrize("task", PAPER_TASKS)
def test_samples_match_the_layout(task: str, encoding: str, tables: dict[str, pa.Table]) -> None:
    vocabulary, table = VOCABULARIES[encoding], tables[task]
    samples = tokenize_items(task, table, vocabulary)
    assert len(table) > 500
    assert samples.lengths.sum() == len(samples.tokens) == len(samples.codes)
    has_codes = vocabulary.encoding is not None
    for item, (tokens, codes, prompt_length) in zip(table.to_pylist(), rows(samples), strict=True):
        question, answer = question_tokens(item, encoding), answer_tokens(item, encoding)
        assert [vocabulary.tokens[token] for token in tokens] == [t for t, _ in question + answer]
        assert prompt_length == len(question)
        assert codes == [[code(text)] if has_codes else [] for _, text in question + answer]


def test_samples_include_every_operator(tables: dict[str, pa.Table]) -> None:
    for task, table in tables.items():
        assert set(table["operator"].to_pylist()) == set(PAPER_TASKS[task].operators)


@pytest.mark.parametrize(
    ("encoding", "tokens"),
    [
        ("digit", ["-", "1", "2", "3", "4", ".", "0", "5", "6", "7"]),
        ("subword", ["-", "123", "4", ".", "056", "7"]),
    ],
)
def test_digits_are_grouped_from_the_left_before_and_after_the_point(
    encoding: str, tokens: list[str]
) -> None:
    vocabulary = VOCABULARIES[encoding]
    rows_of_tokens, _ = tokenize_numbers(pa.array(["7", "-1234.0567", "0.001"]), vocabulary)
    result = [vocabulary.tokens[id_] for id_ in rows_of_tokens.take(np.array([1])).values]
    assert result == tokens


def test_slices_of_tables_give_the_same_samples(tables: dict[str, pa.Table]) -> None:
    table = tables["sorting"]
    part = tokenize_items("sorting", table.slice(100, 50), VOCABULARIES["subword"])
    whole = tokenize_items("sorting", table, VOCABULARIES["subword"]).take(np.arange(100, 150))
    assert all(np.array_equal(a, b) for a, b in zip(part, whole, strict=True))


def test_taken_and_concatenated_samples_are_unchanged(tables: dict[str, pa.Table]) -> None:
    samples = tokenize_items("interval", tables["interval"], VOCABULARIES["bittoken"])
    order = np.random.default_rng(1).permutation(len(samples.lengths))
    parts = concatenate_samples([samples.take(order[:200]), samples.take(order[200:])])
    actual, original = list(rows(parts)), list(rows(samples))
    assert actual == [original[row] for row in order]
