"""Numbers for tests of encodings, reproducible."""

from __future__ import annotations

import numpy as np

from bittoken.encodings import ENCODINGS
from bittoken.encodings.base import Codes, FloatArray, NumberEncoding, Vectors

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -2.5, 0.1, 1e14, 5e-324, -5e-324, 2.2250738585072014e-308,
     2.2250738585072009e-308, 1.7976931348623157e308, -1.7976931348623157e308, np.inf, -np.inf]
)  # fmt: skip


def patterns(n: int = 20_000) -> FloatArray:
    """Return float64 with random bits: all magnitudes, and NaN with various payloads."""
    return np.random.default_rng(1).integers(0, 2**64, n, dtype=np.uint64).view(np.float64)


def finite_and_infinite() -> FloatArray:
    """Return random bits without NaN, powers of two and ten, subnormals, zeros and infinities."""
    random = patterns()
    subnormal = np.random.default_rng(2).integers(0, 2**52, 2000).view(np.float64)
    tens = np.array([float(f"1e{power}") for power in range(-323, 309)])
    twos = 2.0 ** np.arange(-1074, 1024)
    return np.concatenate([SPECIAL, random[~np.isnan(random)], subnormal, tens, -twos])


def decimals(n: int = 20_000) -> FloatArray:
    """Return signed decimals of at most 15 significant digits, from 1e-14 to below 1e15."""
    rng = np.random.default_rng(3)
    significand = rng.integers(0, 10 ** rng.integers(1, 16, n))
    return rng.choice([-1, 1], n) * significand / 10.0 ** rng.integers(0, 15, n)


def random_codes(encoding: NumberEncoding, n: int = 2000) -> Codes:
    """Return codes that a number head might predict, not necessarily codes of a number."""
    outputs = np.random.default_rng(4).standard_normal((n, encoding.outputs))
    return encoding.predict_codes(outputs.astype(np.float32))


def same_bits(left: Vectors, right: Vectors) -> bool:
    """Return whether type, shape and all bits are equal."""
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


ALL = list(ENCODINGS.values())
