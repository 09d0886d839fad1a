"""Numbers that encodings are tested on, the same every time."""

from __future__ import annotations

import numpy as np

from bench.bittoken.encodings import ENCODINGS
from bench.bittoken.encodings.base import Codes, Floats, NumberEncoding, Vectors

HOLDS_NAN = ("bittoken", "bittoken-no-reciprocal", "base10")

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -2.5, 0.1, 1e14, 5e-324, -5e-324, 2.2250738585072014e-308,
     2.2250738585072009e-308, 1.7976931348623157e308, -1.7976931348623157e308, np.inf, -np.inf]
)  # fmt: skip


def patterns(n: int = 20_000) -> Floats:
    """Random bit patterns: all magnitudes, NaN with all payloads among them."""
    return np.random.default_rng(1).integers(0, 2**64, n, dtype=np.uint64).view(np.float64)


def everywhere() -> Floats:
    """Random bit patterns without NaN, powers of two and ten, subnormals, zeros, infinities."""
    random = patterns()
    subnormal = np.random.default_rng(2).integers(0, 2**52, 2000).view(np.float64)
    tens = np.array([float(f"1e{power}") for power in range(-323, 309)])
    twos = 2.0 ** np.arange(-1074, 1024)
    return np.concatenate([SPECIAL, random[~np.isnan(random)], subnormal, tens, -twos])


def decimals(n: int = 20_000) -> Floats:
    """Signed decimals of at most 15 significant digits, from 1e-14 to below 1e15."""
    draws = np.random.default_rng(3)
    significand = draws.integers(0, 10 ** draws.integers(1, 16, n))
    return draws.choice([-1, 1], n) * significand / 10.0 ** draws.integers(0, 15, n)


def random_codes(encoding: NumberEncoding, n: int = 2000) -> Codes:
    """Codes that a number head might decide for, whether or not they are codes of a number."""
    outputs = np.random.default_rng(4).standard_normal((n, encoding.outputs))
    return encoding.decide(outputs.astype(np.float32))


def same_bits(left: Vectors, right: Vectors) -> bool:
    """Equal in type, shape and every bit."""
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


ALL = list(ENCODINGS.values())
