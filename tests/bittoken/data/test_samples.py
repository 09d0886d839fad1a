"""Samples hold, token for token and code for code, what the layout of a question says."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.bittoken.data.packing import Samples, concatenated
from bench.bittoken.data.samples import samples_of
from bench.bittoken.data.sources import Source
from bench.bittoken.data.spelling import number_tokens
from bench.bittoken.encodings.bits import BitToken
from bench.bittoken.vocabulary import Vocabulary
from bench.tasks import TASKS

Token = tuple[str, str | None]
"""A token, and the text of the number that it stands for."""

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
    """An encoding of absolute values, whose sign is a token of its own, as FoNE's."""

    signed = False

    def code(self, values: np.ndarray) -> np.ndarray:
        return super().code(np.abs(values))


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


def number(text: str, writing: str) -> list[Token]:
    """The tokens of one number, by their definition."""
    if writing == "bittoken":
        return [("<|num|>", text)]
    if writing == "unsigned":
        return [*([("-", None)] if text[0] == "-" else []), ("<|num|>", text.lstrip("-"))]
    most = {"digit": 1, "subword": 3}[writing]
    return [(part, None) for part in re.findall(rf"[0-9]{{1,{most}}}|[-.]", text)]


def listed(texts: list[str], writing: str) -> list[Token]:
    found: list[Token] = [("[", None)]
    for place, text in enumerate(texts):
        found += [(", ", None)] * (place > 0) + number(text, writing)
    return [*found, ("]", None)]


def question(item: dict[str, Any], writing: str) -> list[Token]:
    operator, operands = item["operator"], item["operands"]
    if operator in LIST_TOKENS:
        alone, rest = [], operands
        if operator == "interval":
            alone, rest = number(operands[0], writing), operands[1:]
        body = [(LIST_TOKENS[operator], None), *alone, *listed(rest, writing)]
    else:
        a, b = operands
        body = [*number(a, writing), (f" {operator} ", None), *number(b, writing)]
    return [("<|bos|>", None), *body, ("<|eoq|>", None)]


def reply(item: dict[str, Any], writing: str) -> list[Token]:
    answer = item["answer"]
    if isinstance(answer, list):
        body = listed(answer, writing)
    else:
        body = [(answer, None)] if answer in "ABCDEF" else number(answer, writing)
    return [*body, ("<|eos|>", None)]


def code(text: str | None) -> int:
    """The 64 bits of the number nearest to a decimal."""
    if text is None:
        return 0
    bits: int = struct.unpack(">q", struct.pack(">d", float(text)))[0]
    return bits


def rows(samples: Samples) -> Iterator[tuple[list[int], list[list[int]], int]]:
    ends = np.cumsum(samples.lengths)
    for end, length, asked in zip(ends, samples.lengths, samples.questions, strict=True):
        part = slice(end - length, end)
        yield samples.tokens[part].tolist(), samples.codes[part].tolist(), int(asked)


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    """More than 2000 items of each task, with few and with many digits."""
    return {
        task: pa.concat_tables(
            Source(task, size, False, "train", seed=size).block(0) for size in (2, 15)
        )
        for task in TASKS
    }


@pytest.mark.parametrize("writing", VOCABULARIES)
@pytest.mark.parametrize("task", TASKS)
def test_samples_are_those_of_the_layout(
    task: str, writing: str, tables: dict[str, pa.Table]
) -> None:
    vocabulary, table = VOCABULARIES[writing], tables[task]
    samples = samples_of(task, table, vocabulary)
    assert len(table) > 1500
    assert samples.lengths.sum() == len(samples.tokens) == len(samples.codes)
    encoded = vocabulary.encoding is not None
    for item, (tokens, codes, asked) in zip(table.to_pylist(), rows(samples), strict=True):
        first, then = question(item, writing), reply(item, writing)
        assert [vocabulary.tokens[token] for token in tokens] == [t for t, _ in first + then]
        assert asked == len(first)
        assert codes == [[code(text)] if encoded else [] for _, text in first + then]


def test_every_operator_is_among_the_samples(tables: dict[str, pa.Table]) -> None:
    for task, table in tables.items():
        assert set(table["operator"].to_pylist()) == set(TASKS[task].operators)


@pytest.mark.parametrize(
    ("writing", "tokens"),
    [
        ("digit", ["-", "1", "2", "3", "4", ".", "0", "5", "6", "7"]),
        ("subword", ["-", "123", "4", ".", "056", "7"]),
    ],
)
def test_digits_are_grouped_from_the_left_on_either_side_of_the_point(
    writing: str, tokens: list[str]
) -> None:
    vocabulary = VOCABULARIES[writing]
    spelled, _ = number_tokens(pa.array(["7", "-1234.0567", "0.001"]), vocabulary)
    found = [vocabulary.tokens[id_] for id_ in spelled.take(np.array([1])).values]
    assert found == tokens


def test_a_slice_of_items_is_spelled_as_the_items_alone(tables: dict[str, pa.Table]) -> None:
    table = tables["sorting"]
    part = samples_of("sorting", table.slice(100, 50), VOCABULARIES["subword"])
    whole = samples_of("sorting", table, VOCABULARIES["subword"]).take(np.arange(100, 150))
    assert all(np.array_equal(a, b) for a, b in zip(part, whole, strict=True))


def test_samples_taken_out_and_put_together_are_the_same(tables: dict[str, pa.Table]) -> None:
    samples = samples_of("interval", tables["interval"], VOCABULARIES["bittoken"])
    order = np.random.default_rng(1).permutation(len(samples.lengths))
    parts = concatenated([samples.take(order[:500]), samples.take(order[500:])])
    mine, all_ = list(rows(parts)), list(rows(samples))
    assert mine == [all_[row] for row in order]
