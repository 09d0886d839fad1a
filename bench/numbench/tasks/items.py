"""Items of questions: id, split, prompt, exact answer, difficulty."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from numbench.decimal_numbers import normalize, parse_decimal
from numbench.records import Answer, Item
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set

_MASK = (1 << 64) - 1
_SHARD_BITS = 58
SPLIT_SHARES = {"test": 8, "val": 8, "train": 48}
"""How many of the 64 buckets of the content hash belong to each split."""


def make_item(
    task: str,
    operator: str,
    operands: tuple[str, ...],
    params: Mapping[str, int],
    *,
    prompt: str | None = None,
    answer: Answer | None = None,
) -> Item:
    """Return the item of a question. Prompt and answer are computed unless they are given.

    Raises ValueError if an operand is malformed or the answer is undefined.
    """
    if answer is None:
        answer = TASKS[task].exact_answer(operator, operands)
    if prompt is None:
        prompt = load_prompt_set().format_question(task, operator, operands)
    return Item(
        id=item_id(task, operator, operands),
        task=task,
        prompt=prompt,
        answer=answer,
        operands=operands,
        operator=operator,
        difficulty=TASKS[task].difficulty(operator, operands, answer),
        params=dict(params),
    )


def item_id(task: str, operator: str, operands: Sequence[str]) -> str:
    """Return the task and a 64-bit hash of task, operator and the operands' values in order.

    The hash starts with the first 8 bytes (big-endian) of the SHA-256 of `task operator` and
    absorbs each operand as significand (no trailing zeros, two's complement) and exponent.
    """
    start = hashlib.sha256(f"{task} {operator}".encode()).digest()[:8]
    state = int.from_bytes(start, "big")
    for operand in operands:
        significand, exponent = normalize(parse_decimal(operand))
        state = splitmix64(state ^ splitmix64(significand))
        state = splitmix64(state ^ splitmix64(exponent))
    return f"{task}-{state:016x}"


def split_of(operands: Sequence[str]) -> str:
    """Return the split of a question.

    It depends only on the absolute values of the operands, not on seed, order, signs, notation or
    operator, so `a + b` in the training split rules out `b - a` in the test split.
    """
    bucket = content_hash(operands) >> _SHARD_BITS
    for split, share in SPLIT_SHARES.items():
        bucket -= share
        if bucket < 0:
            return split
    raise AssertionError("the shares do not sum to 64")


def shard_of(operands: Sequence[str], shards: int) -> int:
    """Return the index of a question's shard among `shards`, from the same hash as its split."""
    return (content_hash(operands) & ((1 << _SHARD_BITS) - 1)) * shards >> _SHARD_BITS


def content_hash(operands: Sequence[str]) -> int:
    """Return 64 bits: the first six decide the split, the other 58 the shard."""
    total = 0
    for operand in operands:
        significand, exponent = normalize(parse_decimal(operand))
        total += splitmix64(abs(significand) + splitmix64(exponent))
    return splitmix64(total)


def splitmix64(word: int) -> int:
    """Apply the SplitMix64 finaliser, a bijection of 64-bit words (integers modulo 2⁶⁴)."""
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)
