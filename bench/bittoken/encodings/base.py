"""The interface of a single-token number encoding: value ↔ code ↔ vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numbench.errors import BadInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Codes = NDArray[Any]


class NumberEncoding(ABC):
    """A number as one token (paper, "Desiderata for single-token number representation").

    A *code* is the compact form of a number: a row of `columns` entries of type `dtype`. The
    network's input and the target of its number head are both computed from it.

    name: the name in recipes. display: the name in tables and figures. width: the channels of the
    input vector. outputs: the outputs of the number head. signed: whether the code has the sign;
    otherwise it represents the absolute value, and a token `-` precedes a negative number. base:
    the base in which a curriculum counts the digits of operands.
    """

    name: str
    display: str
    columns: int
    dtype: np.dtype[Any]
    width: int
    outputs: int
    signed: bool = True
    base: Literal[2, 10] = 10

    @property
    def scaled_width(self) -> int:
        """The number of channels n in the factor √(network's width / n) of "zero-pad"."""
        return self.width

    @abstractmethod
    def encode(self, values: FloatArray) -> Codes:
        """Return the codes of n values, shape (n, columns).

        Every value but NaN has a code, also one that is out of range.
        """

    @abstractmethod
    def decode(self, codes: Codes) -> FloatArray:
        """Return the n values of n codes: the inverse of `encode`."""

    @abstractmethod
    def vector(self, codes: Tensor) -> Tensor:
        """Return the network's input of codes of shape (…, columns): float32 (…, width)."""

    @abstractmethod
    def predict(self, outputs: Tensor) -> Tensor:
        """Return the codes predicted by outputs of the number head, shape (…, outputs)."""

    @abstractmethod
    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the number loss ℒ_num of n predictions, shape (n,) (paper, "Architecture")."""


def digit_rows(texts: Iterable[str]) -> NDArray[np.int8]:
    """Return the characters of n texts of equal length minus "0", shape (n, length)."""
    rows = [np.frombuffer(text.encode(), np.int8) for text in texts]
    return np.array(rows, np.int8) - ord("0")


def parse_decimals(characters: NDArray[np.uint8]) -> FloatArray:
    """Return the float64 nearest to each row of characters, or inf if it is too large."""
    literals = np.ascontiguousarray(characters).view(f"S{characters.shape[1]}").ravel()
    with np.errstate(over="ignore"):
        return literals.astype(np.float64)


def reject_nan(values: FloatArray, encoding: str) -> None:
    """Raise BadInput if a value is NaN, for encodings that cannot represent it."""
    if np.isnan(values).any():
        raise BadInput(f"{encoding} cannot encode NaN: remove NaN values or use BitToken")
