"""How fast numbers become vectors and vectors numbers, on one core. Prints Markdown.

python benchmarks/encodings.py [--numbers 262144]
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bench.bittoken.encodings import ENCODINGS
from bench.bittoken.encodings.base import Floats, NumberEncoding
from bench.bittoken.encodings.bits import bits, from_bits

BLOCK = 1 << 14
"""Numbers encoded at a time; their bits fit the processor's cache."""
REPEATS = 7
"""Every way is timed so often; the fastest time counts."""
SHIFTS = range(63, -1, -1)


class Way(NamedTuple):
    """One way to encode numbers: values → coded form → values."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


class Speed(NamedTuple):
    """Millions of numbers per second."""

    name: str
    encode: float
    decode: float


def shifted(codes: Tensor) -> Tensor:
    """int64 of shape (n, 64): the bits of n int64, by a plain loop."""
    return torch.stack([codes >> shift & 1 for shift in SHIFTS], dim=-1)


def unshifted(matrix: Tensor) -> Tensor:
    """The inverse of `shifted`."""
    codes = torch.zeros_like(matrix[:, 0])
    for column, shift in enumerate(SHIFTS):
        codes |= matrix[:, column] << shift
    return codes


PLAIN = Way("plain loop of bit shifts in torch, as 0 and 1", shifted, unshifted)
BITS = Way("64 bits as 0 and 1 (`bits`, `from_bits`)", bits, from_bits)


def way_of(encoding: NumberEncoding) -> Way:
    """value → code → vector, and vector → code → value."""
    return Way(
        f"{encoding.display}, width {encoding.width}",
        lambda values: encoding.vector(encoding.code(values)),
        lambda vectors: encoding.value(encoding.nearest(vectors)),
    )


def speed(way: Way, blocks: Sequence[Any]) -> Speed:
    """Both directions; the blocks hold equally many numbers."""
    coded = way.encode(blocks[0])
    found, true = np.asarray(way.decode(coded)), np.asarray(blocks[0])
    if not np.allclose(np.abs(found), np.abs(true), rtol=1e-5, atol=1e-7):
        raise AssertionError(f"{way.name} loses the numbers")
    numbers = len(blocks) * len(blocks[0]) / 1e6
    encode = fastest(way.encode, blocks)
    decode = fastest(way.decode, [coded] * len(blocks))
    return Speed(way.name, numbers / encode, numbers / decode)


def fastest(run: Callable[[Any], object], blocks: Sequence[Any]) -> float:
    """CPU-seconds of the fastest repetition; no result is kept."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        for block in blocks:
            run(block)
        times.append(time.process_time() - start)
    return min(times)


def decimals(n: int) -> Floats:
    """Decimals of at most 15 significant digits, as in the tasks."""
    draws = np.random.default_rng(1)
    significand = draws.integers(1, 10 ** draws.integers(1, 16, n))
    return draws.choice([-1, 1], n) * significand / 10.0 ** draws.integers(0, 15, n)


def measure(numbers: int) -> list[Speed]:
    """The plain loop first, then the bits alone, then every encoding."""
    values = decimals(max(numbers // BLOCK, 1) * BLOCK)
    blocks = [values[at : at + BLOCK] for at in range(0, len(values), BLOCK)]
    plain = speed(PLAIN, [torch.from_numpy(block.view(np.int64)) for block in blocks])
    ways = [BITS, *map(way_of, ENCODINGS.values())]
    return [plain, *(speed(way, blocks) for way in ways)]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", type=int, default=1 << 18)
    options = parser.parse_args()
    torch.set_num_threads(1)
    speeds = measure(options.numbers)
    plain = speeds[0]
    print("# Speed of the number encodings\n")
    print(
        f"`make bench`, Python {platform.python_version()}, one core, NumPy; {BLOCK:,} numbers at "
        "a time.\nMillions of numbers per CPU-second, value → vector and back, and how many times "
        "the plain loop's.\n"
    )
    print("| encoding | encode | : plain | decode | : plain |")
    print("|---|---:|---:|---:|---:|")
    for name, encode, decode in speeds:
        ratios = f"{encode / plain.encode:.1f}", f"{decode / plain.decode:.1f}"
        print(f"| {name} | {encode:.1f} | {ratios[0]} | {decode:.1f} | {ratios[1]} |")


if __name__ == "__main__":
    main()
