"""Items of questions: id, split, prompt, exact answer, difficulty."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from numbench.core.decimal_numbers import parse_decimal, split_decimal
from numbench.records import Answer, Item
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set
from numbench.tasks.random_words import Word, splitmix64

SHARD_BITS = 58
SPLIT_BUCKETS = {"test": range(8), "val": range(8, 16), "train": range(16, 64)}
"""The buckets of the content hash that belong to each split."""


def make_item(
    task: str,
    operator: str,
    operands: tuple[str, ...],
    params: Mapping[str, int],
    answer: Answer | None = None,
) -> Item:
    """Return the item of a question. The answer is computed unless it is given.

    Raises ValueError if an operand is malformed or the answer is undefined.
    """
    if answer is None:
        answer = TASKS[task].exact_answer(operator, operands)
    return Item(
        id=item_id(task, operator, operands),
        task=task,
        prompt=load_prompt_set().format_question(task, operator, operands),
        answer=answer,
        operands=operands,
        operator=operator,
        difficulty=TASKS[task].difficulty(operator, operands, answer),
        params=dict(params),
    )


def item_id(task: str, operator: str, operands: Sequence[str]) -> str:
    """Return the task and a 64-bit hash of task, operator and the operands' values in order.

    The hash absorbs each operand as significand (no trailing zeros, two's complement) and exponent.
    """
    state = initial_state(task, operator)
    for operand in operands:
        state = absorb(state, *split_decimal(parse_decimal(operand)))
    return f"{task}-{state:016x}"


def initial_state(task: str, operator: str) -> int:
    """Return the first 8 bytes (big-endian) of the SHA-256 of `task operator`."""
    return int.from_bytes(hashlib.sha256(f"{task} {operator}".encode()).digest()[:8], "big")


def absorb(state: Word, significand: Word, exponent: Word) -> Word:
    """Return the state of an id's hash after one more operand."""
    return splitmix64(splitmix64(state ^ splitmix64(significand)) ^ splitmix64(exponent))


def split_of(operands: Sequence[str]) -> str:
    """Return the split of a question.

    It depends only on the absolute values of the operands, not on seed, order, signs, notation or
    operator, so `a + b` in the training split rules out `b - a` in the test split.
    """
    bucket = content_hash(operands) >> SHARD_BITS
    return next(split for split, buckets in SPLIT_BUCKETS.items() if bucket in buckets)


def shard_of(operands: Sequence[str], shards: int) -> int:
    """Return the index of a question's shard among `shards`, from the same hash as its split."""
    return (content_hash(operands) & ((1 << SHARD_BITS) - 1)) * shards >> SHARD_BITS


def content_hash(operands: Sequence[str]) -> int:
    """Return 64 bits: the first six decide the split, the other 58 the shard."""
    return splitmix64(sum(operand_hash(*split_decimal(parse_decimal(each))) for each in operands))


def operand_hash(significand: Word, exponent: Word) -> Word:
    """Return the summand of an operand in the content hash of its question."""
    return splitmix64(abs(significand) + splitmix64(exponent))
