"""Numerical checks of the paper's statements on sinusoidal encodings.

Lemma "additive homomorphism", Proposition "complexity of multiplication" and "Potential
improvements to sinusoidal encoding".
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bittoken.encodings.base import NumberEncoding
from bittoken.encodings.fone import FoNE, FoNELog, SinusoidalEncoding

LINEAR, LOGARITHMIC = FoNE(), FoNELog()


def _complex(encoding: NumberEncoding, values: NDArray[np.float64]) -> NDArray[np.complex128]:
    pairs = encoding.vector(encoding.encode(values)).astype(np.float64).reshape(len(values), -1, 2)
    points: NDArray[np.complex128] = pairs[..., 0] + 1j * pairs[..., 1]
    return points


def _operands(rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = rng.integers(0, 10**14, (2, 500))
    return first, second


def test_the_encoding_of_a_sum_is_the_product_of_the_encodings() -> None:
    """For sums of decimals with 6 fraction digits, exact in their first 15 digits."""
    first, second = _operands(np.random.default_rng(7))
    product = _complex(LINEAR, first / 1e6) * _complex(LINEAR, second / 1e6)
    assert np.abs(product - _complex(LINEAR, (first + second) / 1e6)).max() < 3e-7


def test_the_logarithmic_encoding_of_a_product_is_the_product_of_the_encodings() -> None:
    """For the longest periods; the last digits of logarithms have rounding errors."""
    rng = np.random.default_rng(8)
    first, second = 10 ** rng.uniform(-14, 14, (2, 500))
    product = _complex(LOGARITHMIC, first) * _complex(LOGARITHMIC, second)
    error = np.abs(product - _complex(LOGARITHMIC, first * second))
    assert error[:, :15].max() < 3e-3
    assert error[:, -1].max() > 0.1


def test_each_encoding_supports_only_one_operation() -> None:
    first, second = np.array([3.0]), np.array([7.0])
    product = _complex(LINEAR, first) * _complex(LINEAR, second)
    assert np.abs(product - _complex(LINEAR, first * second)).max() > 0.5
    total = _complex(LOGARITHMIC, first) * _complex(LOGARITHMIC, second)
    assert np.abs(total - _complex(LOGARITHMIC, first + second)).max() > 0.5


def _mixing(size: int, base: int = 10) -> list[list[Fraction]]:
    """M: the phase of period b^(φ+1) is the sum of k_i b^(i-φ-1) over i ≤ φ (both from 0)."""
    return [
        [Fraction(1, base ** (row + 1 - column)) if column <= row else Fraction(0)
         for column in range(size)]
        for row in range(size)
    ]  # fmt: skip


def _times(matrix: list[list[Fraction]], vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


def test_phases_are_the_mixing_matrix_times_the_digits() -> None:
    """The inverse gives the digits: 10 times a phase minus the previous one."""
    values = np.array([1.0, 2.5, 0.1, 12345.678, 99999.00001])
    codes = LINEAR.encode(values)
    matrix = _mixing(49)
    for row, points in zip(codes.tolist(), _complex(LINEAR, values), strict=True):
        digits = [Fraction(digit) for digit in reversed(row)]
        phases = _times(matrix, digits)
        turns = np.array([float(phase) for phase in reversed(phases)])
        assert np.abs(points - np.exp(2j * np.pi * turns)).max() < 1e-7
        inverse = [10 * phase - lower for phase, lower in zip(phases, [0, *phases], strict=False)]
        assert inverse == digits


def test_the_mixing_matrix_is_invertible_and_its_square_ill_conditioned() -> None:
    """κ(M ⊗ M) = κ(M)²."""
    for size in (1, 3, 6):
        matrix = np.array(_mixing(size), dtype=np.float64)
        assert np.isclose(np.linalg.det(matrix), 10.0**-size)
        condition = np.linalg.cond(matrix)
        assert np.isclose(np.linalg.cond(np.kron(matrix, matrix)), condition**2)
        assert condition > 1 or size == 1


def test_bilinear_maps_depend_on_the_squared_mixing_matrix() -> None:
    """(Mk) ⊗ (Ml) = (M ⊗ M)(k ⊗ l), exactly; the digits' convolution is a sum of its entries."""
    matrix = np.array(_mixing(3), dtype=object)
    left = np.array([Fraction(d) for d in (7, 2, 1)], dtype=object)
    right = np.array([Fraction(d) for d in (4, 0, 9)], dtype=object)
    mixed = np.kron(matrix @ left, matrix @ right)
    pairs = np.kron(left, right)
    assert (mixed == np.kron(matrix, matrix) @ pairs).all()
    convolution = [sum(left[i] * right[t - i] for i in range(3) if 0 <= t - i < 3)
                   for t in range(5)]  # fmt: skip
    assert sum(c * 10**t for t, c in enumerate(convolution)) == 127 * 904


class _Integers(SinusoidalEncoding):
    """Integers below 1000: periods 10^3, 10^2 and 10."""

    name = display = "integers"

    def __init__(self) -> None:
        super().__init__(3, 0)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int8]:
        digits = (values.astype(np.int64)[:, None] // (100, 10, 1)) % 10
        return digits.astype(np.int8)

    def decode(self, codes: NDArray[np.int8]) -> NDArray[np.float64]:
        return codes.astype(np.float64) @ (100, 10, 1)


def _states() -> NDArray[np.int64]:
    """Return the components of 0 … 999 at precision P = 10: the tenth of the circle of each."""
    turns = np.angle(_complex(_Integers(), np.arange(1000.0))) / (2 * np.pi) % 1
    states: NDArray[np.int64] = np.floor(10 * turns + 1e-6).astype(np.int64) % 10
    return states


def test_all_components_together_identify_every_number() -> None:
    assert len(np.unique(_states(), axis=0)) == 1000


def test_too_few_components_cannot_determine_a_product() -> None:
    """Fewer than log_P |X| = 3 components S have at most P^|S| states for 1000 numbers.

    Two numbers with the same state would have the same products, but there is a factor for which
    the products differ in the component of the longest period.
    """
    states = _states()
    product = np.arange(1000)[:, None] * np.arange(1000)[None] % 1000
    for size in (1, 2):
        for subset in combinations(range(3), size):
            _, group = np.unique(states[:, subset], axis=0, return_inverse=True)
            assert group.max() + 1 <= 10**size < 1000
            for state in range(group.max() + 1):
                same_state = np.flatnonzero(group.ravel() == state)
                first, second = same_state[0], same_state[1]
                assert (product[first] != product[second]).any()


def test_shortest_period_of_a_product_of_integers_depends_only_on_the_last_digits() -> None:
    """The bound holds for the longest period. Here b^φ·Δ is an integer, so all products agree."""
    product = np.arange(1000)[:, None] * np.arange(1000)[None] % 10
    last = np.arange(1000) % 10
    assert (product == product[np.ix_(last, last)]).all()
