"""The interface of a single-token number encoding: value ↔ code ↔ vector, in NumPy and torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numbench.errors import BadInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Codes = NDArray[Any]
Vectors = NDArray[np.float32]


class NumberEncoding(ABC):
    """A number as one token (paper, "Desiderata for single-token number representation").

    A *code* is the compact form of a number: a row of `columns` entries of type `dtype`. The
    network's input and the target of its number head are both computed from it. `width` is the
    number of channels of the input vector, `outputs` the number of outputs of the number head. If
    `signed` is false, the code represents the absolute value, and a token `-` precedes a negative
    number.

    The NumPy and torch methods agree bit for bit.
    """

    name: str
    display: str
    columns: int
    dtype: np.dtype[Any]
    width: int
    outputs: int
    signed: bool = True

    @property
    def scaled_width(self) -> int:
        """The number of channels n in the factor √(network's width / n) of "zero-pad"."""
        return self.width

    @abstractmethod
    def encode(self, values: FloatArray) -> Codes:
        """Return the codes of n values, shape (n, columns)."""

    @abstractmethod
    def decode(self, codes: Codes) -> FloatArray:
        """Return the n values of n codes: the inverse of `encode`."""

    @abstractmethod
    def vector(self, codes: Codes) -> Vectors:
        """Return the input vectors of the network: float32 of shape (n, width)."""

    @abstractmethod
    def nearest_codes(self, vectors: Vectors) -> Codes:
        """Return the codes whose vectors are nearest: the inverse of `vector`."""

    @abstractmethod
    def predict_codes(self, outputs: Vectors) -> Codes:
        """Return the codes predicted by outputs of the number head, shape (n, outputs)."""

    @abstractmethod
    def torch_vector(self, codes: Tensor) -> Tensor:
        """Return `vector` of a tensor of shape (…, columns)."""

    @abstractmethod
    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
        """Return `predict_codes` of a tensor of shape (…, outputs)."""

    @abstractmethod
    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the number loss ℒ_num of n predictions, shape (n,) (paper, "Architecture")."""


def reject_nan(values: FloatArray, encoding: str) -> None:
    """Raise BadInput if a value is NaN, for encodings that cannot represent it."""
    if np.isnan(values).any():
        raise BadInput(f"{encoding} cannot encode NaN: remove NaN values or use BitToken")
