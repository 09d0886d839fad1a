"""Measure the speed of the number encodings on one core. Prints Markdown.

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

from bittoken.encodings import ENCODINGS
from bittoken.encodings.base import FloatArray, NumberEncoding

BLOCK = 1 << 14
"""Numbers encoded at a time; their bits fit into the processor's cache."""
REPEATS = 7
"""Repetitions of every measurement; the fastest counts."""
SHIFTS = range(63, -1, -1)


class EncodingMethod(NamedTuple):
    """A method to encode numbers: values → codes → values."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


class Speed(NamedTuple):
    """Millions of numbers per second."""

    name: str
    encode: float
    decode: float


def bits_by_shifts(codes: Tensor) -> Tensor:
    """Return the bits of n int64 values, int64 of shape (n, 64), with a loop of shifts."""
    return torch.stack([codes >> shift & 1 for shift in SHIFTS], dim=-1)


def codes_from_bits(matrix: Tensor) -> Tensor:
    """Return the inverse of `bits_by_shifts`."""
    codes = torch.zeros_like(matrix[:, 0])
    for column, shift in enumerate(SHIFTS):
        codes |= matrix[:, column] << shift
    return codes


BASELINE = EncodingMethod(
    "loop of bit shifts in torch, as 0 and 1", bits_by_shifts, codes_from_bits
)


def method_of(encoding: NumberEncoding) -> EncodingMethod:
    """Return the method value → code → vector, and vector → code → value."""
    return EncodingMethod(
        f"{encoding.display}, width {encoding.width}",
        lambda values: encoding.vector(torch.from_numpy(encoding.encode(values))),
        lambda vectors: encoding.decode(encoding.predict(vectors[:, : encoding.outputs]).numpy()),
    )


def speed(method: EncodingMethod, blocks: Sequence[Any]) -> Speed:
    """Return the speed of both directions. All blocks must have the same size."""
    codes = method.encode(blocks[0])
    numbers = len(blocks) * len(blocks[0]) / 1e6
    encode = fastest(method.encode, blocks)
    decode = fastest(method.decode, [codes] * len(blocks))
    return Speed(method.name, numbers / encode, numbers / decode)


def fastest(run: Callable[[Any], object], blocks: Sequence[Any]) -> float:
    """Return the CPU-seconds of the fastest repetition."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        for block in blocks:
            run(block)
        times.append(time.process_time() - start)
    return min(times)


def decimals(n: int) -> FloatArray:
    """Return decimals with at most 15 significant digits, as in the tasks."""
    draws = np.random.default_rng(1)
    significand = draws.integers(1, 10 ** draws.integers(1, 16, n))
    return draws.choice([-1, 1], n) * significand / 10.0 ** draws.integers(0, 15, n)


def measure(numbers: int) -> list[Speed]:
    """Return the speeds of the loop and of every encoding."""
    values = decimals(max(numbers // BLOCK, 1) * BLOCK)
    blocks = [values[at : at + BLOCK] for at in range(0, len(values), BLOCK)]
    baseline = speed(BASELINE, [torch.from_numpy(block.view(np.int64)) for block in blocks])
    return [baseline, *(speed(method_of(encoding), blocks) for encoding in ENCODINGS.values())]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", type=int, default=1 << 18)
    options = parser.parse_args()
    torch.set_num_threads(1)
    speeds = measure(options.numbers)
    baseline = speeds[0]
    print("# Speed of the number encodings\n")
    print(
        f"`make bench`, Python {platform.python_version()}, one core; {BLOCK:,} numbers at "
        "a time.\nMillions of numbers per CPU-second, value → vector and back, and relative to the "
        "loop of bit shifts.\n"
    )
    print("| encoding | encode | relative | decode | relative |")
    print("|---|---:|---:|---:|---:|")
    for name, encode, decode in speeds:
        ratios = f"{encode / baseline.encode:.1f}", f"{decode / baseline.decode:.1f}"
        print(f"| {name} | {encode:.1f} | {ratios[0]} | {decode:.1f} | {ratios[1]} |")


if __name__ == "__main__":
    main()
