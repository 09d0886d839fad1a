"""An encoding that is measured, and the numbers it is measured on."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bittoken.data.tokenization import tokenize_numbers
from bittoken.encodings.base import Codes, FloatArray, NumberEncoding, Vectors
from bittoken.vocabulary import Vocabulary, tokenize_decimal
from numbench.dataset.store import Dataset
from numbench.records import Item

SEED = 1
RANDOM_COUNT = 20_000
"""The number of random float64, and of random pairs of numbers."""

DECADES = range(-324, 309)
MAX_DIGITS = 17.0
"""Correct significant digits of a value that is recovered exactly."""

_NUMBERS_PER_DECADE = 40


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
    """A single-token encoding, or one that writes a number as text, with the numbers to encode.

    trained_score: the mean score in percent of networks trained with it, if known.
    """

    def __init__(
        self, name: str, numbers: DatasetNumbers, trained_score: float | None = None
    ) -> None:
        self.name, self.numbers, self.trained_score = name, numbers, trained_score
        self.vocabulary = Vocabulary(name)
        encoding = self.vocabulary.encoding
        self.display = encoding.display if encoding else name.capitalize()

    @property
    def encoding(self) -> NumberEncoding:
        """The single-token encoding. Not for encodings that write a number as text."""
        assert self.vocabulary.encoding is not None
        return self.vocabulary.encoding

    @property
    def has_vectors(self) -> bool:
        """Whether numbers are single tokens with vectors."""
        return self.vocabulary.encoding is not None

    @cached_property
    def token_counts(self) -> NDArray[np.int64]:
        """The number of tokens of each text, including its sign."""
        tokens, _ = tokenize_numbers(pa.array(self.numbers.texts), self.vocabulary)
        return tokens.lengths

    @cached_property
    def codes(self) -> Codes:
        """The codes of the dataset's values."""
        return self.encoding.encode(self.numbers.values)

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors of the dataset's values."""
        return self.encoding.vector(self.codes)

    def percent_recovered(self, vectors: Vectors) -> float:
        """Return the percentage of the codes that are recovered from modified vectors."""
        is_recovered = (self.encoding.nearest_codes(vectors) == self.codes).all(axis=1)
        return 100 * float(is_recovered.mean())

    def round_trip(self, values: FloatArray) -> FloatArray:
        """Convert values to vectors, or tokens, and back.

        Unsigned encodings keep the sign, which is a separate token.
        """
        if not self.has_vectors:
            group = self.vocabulary.digits_per_token or 1
            texts = (f"{Decimal(repr(value)):f}" for value in values.tolist())
            return np.array(
                [float("".join(tokenize_decimal(text, group))) for text in texts], np.float64
            )
        vectors = self.encoding.vector(self.encoding.encode(values))
        decoded = self.encoding.decode(self.encoding.nearest_codes(vectors))
        return decoded if self.encoding.signed else np.copysign(decoded, values)

    def correct_digits(self, values: FloatArray) -> FloatArray:
        """Return −lg of the relative error of nonzero values, clipped to 0 … 17 (exact)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            error = np.abs((self.round_trip(values) - values) / values)
            digits = np.where(error == 0, MAX_DIGITS, -np.log10(error))
        clipped: FloatArray = np.clip(np.nan_to_num(digits, nan=0.0), 0.0, MAX_DIGITS)
        return clipped

    @cached_property
    def digits(self) -> FloatArray:
        """The correct digits of the dataset's magnitudes."""
        return self.correct_digits(self.numbers.magnitudes)

    @cached_property
    def digits_by_decade(self) -> FloatArray:
        """The minimum of correct digits over random numbers of 17 digits in each of `DECADES`.

        NaN for a decade without any float64.
        """
        rng = np.random.default_rng(SEED)
        significands = rng.integers(10**16, 10**17, (len(DECADES), _NUMBERS_PER_DECADE))
        texts = [
            [f"{significand}e{decade - 16}" for significand in row]
            for decade, row in zip(DECADES, significands.tolist(), strict=True)
        ]
        values = np.array(texts).astype(np.float64)
        is_valid = (values > 0) & np.isfinite(values)
        digits = np.full(values.shape, np.inf)
        digits[is_valid] = self.correct_digits(values[is_valid])
        return np.where(is_valid.any(axis=1), digits.min(axis=1), np.nan)


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
