"""The encodings that are measured, and the numbers they are measured on."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import numpy as np

from numbench.bittoken.desiderata.token_counts import count_number_tokens
from numbench.bittoken.encodings.base import Codes, FloatArray, NumberEncoding, Vectors
from numbench.bittoken.vocabulary import ENCODING_NAMES, Vocabulary, tokenize_decimal
from numbench.dataset.store import Dataset
from numbench.records import Item

SEED = 1
RANDOM_COUNT = 20_000
"""The number of random float64, and of random pairs of numbers."""

_SHORT_NAMES = {
    "bittoken": "BitTok",
    "bittoken-no-reciprocal": "no 1/x",
    "fone": "FoNE",
    "fone-log": "FoNE ln",
    "xval": "xVal",
    "base10": "Base10",
    "digit": "Digit",
    "subword": "Subword",
}
_DISPLAY_NAMES = {"digit": "Single digit", "subword": "Subword"}


class DatasetNumbers(NamedTuple):
    """The numbers of a dataset. texts: all of them as printed, including repetitions.

    values: the distinct values, ascending. random: finite float64 with random bits.
    """

    texts: list[str]
    values: FloatArray
    random: FloatArray

    @property
    def magnitudes(self) -> FloatArray:
        """The distinct nonzero absolute values, ascending."""
        magnitudes = np.unique(np.abs(self.values))
        return magnitudes[magnitudes > 0]


class EncodingUnderTest:
    """A single-token encoding, or one that writes a number as text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.vocabulary = Vocabulary(name)
        self.short_name = _SHORT_NAMES.get(name, name)
        encoding = self.vocabulary.encoding
        self.display = encoding.display if encoding else _DISPLAY_NAMES.get(name, name)

    @property
    def encoding(self) -> NumberEncoding | None:
        """The single-token encoding; None if numbers are written as text."""
        return self.vocabulary.encoding

    def tokens(self, text: str) -> int:
        """Return the number of tokens of a number, including its sign."""
        return count_number_tokens(text, self.vocabulary)

    def round_trip(self, values: FloatArray) -> FloatArray:
        """Convert values to vectors, or tokens, and back.

        Unsigned encodings keep the sign, which is a separate token.
        """
        encoding = self.encoding
        if encoding is None:
            group = self.vocabulary.digits_per_token or 1
            texts = (f"{Decimal(repr(value)):f}" for value in values.tolist())
            return np.array(
                [float("".join(tokenize_decimal(text, group))) for text in texts], np.float64
            )
        vectors = encoding.vector(encoding.encode(values))
        decoded = encoding.decode(encoding.nearest_codes(vectors))
        return decoded if encoding.signed else np.copysign(decoded, values)


class EncodedNumbers:
    """Values with their codes and vectors in an encoding."""

    def __init__(self, encoding: NumberEncoding, values: FloatArray) -> None:
        self.encoding = encoding
        self._values = values

    @cached_property
    def codes(self) -> Codes:
        """The codes of the values."""
        return self.encoding.encode(self._values)

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors of the values."""
        return self.encoding.vector(self.codes)

    def percent_recovered(self, vectors: Vectors) -> float:
        """Return the percentage of codes that are recovered from modified vectors."""
        is_recovered = (self.encoding.nearest_codes(vectors) == self.codes).all(axis=1)
        return 100 * float(is_recovered.mean())


def all_encodings() -> list[EncodingUnderTest]:
    """Return all encodings, in the order of `ENCODING_NAMES`."""
    return [EncodingUnderTest(name) for name in ENCODING_NAMES]


def dataset_numbers(dataset: Dataset) -> DatasetNumbers:
    """Return the operands and numeric answers of all items, and random float64."""
    items = (item for task_items in dataset.by_task.values() for item in task_items)
    texts = [text for item in items for text in (*item.operands, *_numeric_answers(item))]
    values = np.unique(np.array([float(text) for text in texts]))
    bits = np.random.default_rng(SEED).integers(0, 2**64, RANDOM_COUNT, dtype=np.uint64)
    random = bits.view(np.float64)
    return DatasetNumbers(texts, values, random[np.isfinite(random)])


def _numeric_answers(item: Item) -> tuple[str, ...]:
    if isinstance(item.answer, tuple):
        return item.answer
    return () if item.answer.isalpha() else (item.answer,)
