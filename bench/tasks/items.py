"""From a question to its item: identity, split, wording, exact answer, difficulty."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bench.numerals import parse, reduced
from bench.records import Answer, Item
from bench.tasks import TASKS
from bench.tasks.phrasing import prompts

_MASK = (1 << 64) - 1
_HOME_BITS = 58
SPLIT_SHARES = {"test": 8, "val": 8, "train": 48}
"""How many of the 64 buckets of the content hash belong to each split."""


def make_item(
    task: str,
    operator: str,
    operands: tuple[str, ...],
    params: dict[str, int],
    *,
    prompt: str | None = None,
    answer: Answer | None = None,
) -> Item:
    """The item of a question; what is not given is worked out.

    ValueError where an operand is malformed or the answer is undefined.
    """
    if answer is None:
        answer = TASKS[task].truth(operator, operands)
    return Item(
        id=item_id(task, operator, operands),
        task=task,
        prompt=prompts().phrase(task, operator, operands) if prompt is None else prompt,
        answer=answer,
        operands=operands,
        operator=operator,
        difficulty=TASKS[task].difficulty(operator, operands, answer),
        params=params,
    )


def item_id(task: str, operator: str, operands: Sequence[str]) -> str:
    """Task and a 64-bit hash of task, operator and the operands' values in their order.

    It starts from the SHA-256 of `task operator` (first 8 bytes, big-endian) and absorbs each
    operand as significand (no trailing zeros, two's complement) and exponent.
    """
    start = hashlib.sha256(f"{task} {operator}".encode()).digest()[:8]
    state = int.from_bytes(start, "big")
    for operand in operands:
        significand, exponent = reduced(parse(operand))
        state = mix(state ^ mix(significand))
        state = mix(state ^ mix(exponent))
    return f"{task}-{state:016x}"


def split_of(operands: Sequence[str]) -> str:
    """The split to which a question belongs, whatever the seed that drew it.

    It depends on the absolute values of the operands alone, not on their order, signs, notation
    or operator: nobody can train on `a + b` and be tested on `b - a`.
    """
    bucket = content(operands) >> _HOME_BITS
    for split, share in SPLIT_SHARES.items():
        bucket -= share
        if bucket < 0:
            return split
    raise AssertionError("shares do not add up to 64")


def home_of(operands: Sequence[str], shards: int) -> int:
    """The shard among `shards` to which a question belongs, by the same rule."""
    return (content(operands) & ((1 << _HOME_BITS) - 1)) * shards >> _HOME_BITS


def content(operands: Sequence[str]) -> int:
    """64 bits: six that decide the split, then 58 that decide the shard."""
    total = 0
    for operand in operands:
        significand, exponent = reduced(parse(operand))
        total += mix(abs(significand) + mix(exponent))
    return mix(total)


def mix(word: int) -> int:
    """The SplitMix64 finaliser: a bijection of 64-bit words (integers are taken modulo 2⁶⁴)."""
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)
