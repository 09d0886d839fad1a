"""What a single-token number encoding is: value ↔ code ↔ vector, in NumPy and in torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Codes = NDArray[Any]
Vectors = NDArray[np.float32]


class NumberEncoding(ABC):
    """A number as one token (paper, "Desiderata for single-token number representation").

    A *code* is the compact form of a number: a row of `columns` entries of type `dtype`, from
    which both the network's input and the target of its number head follow. `width` channels
    enter the network, `outputs` values leave the number head. Where `signed` is false the code
    holds the absolute value and a text token `-` stands before the number.

    NumPy and torch forms agree bit for bit.
    """

    name: str
    display: str
    columns: int
    dtype: np.dtype[Any]
    width: int
    outputs: int
    signed: bool = True

    @abstractmethod
    def code(self, values: Floats) -> Codes:
        """Codes of shape (n, columns) of n values."""

    @abstractmethod
    def value(self, codes: Codes) -> Floats:
        """The n values of codes: the inverse of `code`."""

    @abstractmethod
    def vector(self, codes: Codes) -> Vectors:
        """What enters the network: float32 of shape (n, width)."""

    @abstractmethod
    def nearest(self, vectors: Vectors) -> Codes:
        """The codes whose vectors these are, or are nearest to: the inverse of `vector`."""

    @abstractmethod
    def decide(self, outputs: Vectors) -> Codes:
        """The codes that the number head's outputs, of shape (n, outputs), speak for."""

    @abstractmethod
    def torch_vector(self, codes: Tensor) -> Tensor:
        """`vector` on a tensor of shape (…, columns)."""

    @abstractmethod
    def torch_decide(self, outputs: Tensor) -> Tensor:
        """`decide` on a tensor of shape (…, outputs)."""

    @abstractmethod
    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """The number loss ℒ_num of each of n predictions, shape (n,) (paper, "Architecture")."""
