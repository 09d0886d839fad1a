"""What is measured: the encodings and the spellings, and the numbers it is measured on."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bench.bittoken.encodings.base import Codes, Floats, NumberEncoding, Vectors
from bench.bittoken.token_counts import number_tokens
from bench.bittoken.vocabulary import ENCODING_NAMES, Vocabulary, spelled
from bench.dataset.store import Dataset
from bench.records import Item

SEED = 1
RANDOM = 20_000
"""Random float64, and pairs of numbers, that are drawn."""

_SHORT = {
    "bittoken": "BitTok",
    "bittoken-no-reciprocal": "no 1/x",
    "fone": "FoNE",
    "fone-log": "FoNE ln",
    "xval": "xVal",
    "base10": "Base10",
    "digit": "Digit",
    "subword": "Subword",
}
_SPELLINGS = {"digit": "Single digit", "subword": "Subword"}


class Numbers(NamedTuple):
    """The numbers of a dataset. texts: as printed, each as often as it occurs.

    values: the distinct values, ascending. random: float64 of random bits, all finite.
    """

    texts: list[str]
    values: Floats
    random: Floats

    @property
    def magnitudes(self) -> Floats:
        """The distinct absolute values but 0, ascending."""
        found = np.unique(np.abs(self.values))
        return found[found > 0]


class Subject:
    """A way to write numbers: a single-token encoding, or a spelling."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.vocabulary = Vocabulary(name)
        self.short = _SHORT.get(name, name)
        encoding = self.vocabulary.encoding
        self.display = encoding.display if encoding else _SPELLINGS.get(name, name)

    @property
    def encoding(self) -> NumberEncoding | None:
        """None for a spelling, which gives a number no vector of its own."""
        return self.vocabulary.encoding

    def tokens(self, text: str) -> int:
        """Tokens of a number, its sign included."""
        return number_tokens(text, self.vocabulary)

    def back(self, values: Floats) -> Floats:
        """value → vector → value, or value → tokens → value; the sign is kept beside it."""
        encoding = self.encoding
        if encoding is None:
            group = self.vocabulary.group or 1
            texts = (f"{Decimal(repr(value)):f}" for value in values.tolist())
            return np.array([float("".join(spelled(text, group))) for text in texts], np.float64)
        found = encoding.value(encoding.nearest(encoding.vector(encoding.code(values))))
        return found if encoding.signed else np.copysign(found, values)


class Vectored:
    """An encoding with the codes and vectors of a dataset's distinct values."""

    def __init__(self, encoding: NumberEncoding, values: Floats) -> None:
        self.encoding = encoding
        self._values = values

    @cached_property
    def codes(self) -> Codes:
        return self.encoding.code(self._values)

    @cached_property
    def vectors(self) -> Vectors:
        return self.encoding.vector(self.codes)

    def surviving(self, vectors: Vectors) -> float:
        """The share of codes, in percent, that changed vectors still give back."""
        same = (self.encoding.nearest(vectors) == self.codes).all(axis=1)
        return 100 * float(same.mean())


def subjects() -> list[Subject]:
    """All encodings and spellings, in the order of `ENCODING_NAMES`."""
    return [Subject(name) for name in ENCODING_NAMES]


def numbers_of(dataset: Dataset) -> Numbers:
    """The operands and numeric answers of all items, and random float64 beside them."""
    items = (item for listed in dataset.by_task.values() for item in listed)
    texts = [text for item in items for text in (*item.operands, *_numeric_answers(item))]
    values = np.unique(np.array([float(text) for text in texts]))
    bits = np.random.default_rng(SEED).integers(0, 2**64, RANDOM, dtype=np.uint64)
    random = bits.view(np.float64)
    return Numbers(texts, values, random[np.isfinite(random)])


def _numeric_answers(item: Item) -> tuple[str, ...]:
    if isinstance(item.answer, tuple):
        return item.answer
    return () if item.answer.isalpha() else (item.answer,)
