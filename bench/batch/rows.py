"""From questions to finished rows: an Arrow table with the fields of an Item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.batch import answers, difficulty, lists, pairs
from bench.batch.difficulty import Difficulties
from bench.batch.fixed import Flags, Ints, Numbers, magnitude
from bench.batch.questions import Hashes, Questions, belongs, in_range
from bench.batch.text import fixed_width, plain
from bench.batch.words import Words
from bench.records import SCHEMA
from bench.tasks import TASKS
from bench.tasks.numbers import HIGHEST_EXPONENT, LOWEST_EXPONENT
from bench.tasks.phrasing import LETTERS, prompts
from bench.tasks.shards import Shard

SAMPLERS: dict[str, Callable[[Words, int], Questions]] = {**pairs.SAMPLERS, **lists.SAMPLERS}
"""The tasks that can be made in batches."""

_TWINS = {"mean": "std", "std": "mean"}
"""Tasks that ask about the same lists: a list must give both an answer in range."""

_HEX = np.array([list(b"%02x" % byte) for byte in range(256)], np.uint8)


def sample_questions(shard: Shard, first: int, count: int) -> Questions:
    """Attempts first … first + count − 1 of a shard, as far as they belong to it."""
    words = Words(shard.stream, TASKS[shard.task].words, first, count)
    questions = SAMPLERS[shard.task](words, shard.max_digits)
    questions = questions.where(questions.valid)
    return questions.where(belongs(questions, shard.split, shard.index, shard.count))


def finished(questions: Questions, hashes: Hashes, max_digits: int) -> pa.Table:
    """The items of those questions whose answer is in range, with the fields of `Item`."""
    task = TASKS[questions.task]
    if task.metric == "log_smape":
        values = answers.numbers(questions, max_digits)
        keep = in_range(values)
        if questions.task in _TWINS:
            keep &= _twin_in_range(questions, max_digits)
        questions, values, hashes = questions.where(keep), values.where(keep), hashes[keep]
        operands = _operands(questions)
        answer = plain(values)
        delta = _arithmetic_difficulty(questions, values, operands, answer)
    else:
        operands = _operands(questions)
        answer, delta = _comparison(questions, operands)
    return pa.table(
        {
            "id": _ids(questions.task, hashes),
            "task": _constant(questions.task, len(questions)),
            "prompt": _prompts(questions, operands),
            "answer": answer,
            "operands": operands,
            "operator": pa.array(task.operators).take(pa.array(questions.operator)),
            "difficulty": _struct(base10=delta.base10, base2=delta.base2),
            "params": _struct(**questions.params),
            "schema": pa.array(np.full(len(questions), SCHEMA)),
        }
    )


def _twin_in_range(questions: Questions, max_digits: int) -> Flags:
    """Whether the other moment of each list is in range, worked out only where it may not be.

    A mean can leave the range only upwards, where its magnitude is the highest of all. A
    deviation can only be too small, and is not where the list spans 10⁻¹³: it is at least the
    span over 2·√5.
    """
    if questions.task == "std":
        doubtful = questions.params["exponent"] == HIGHEST_EXPONENT
    else:
        units, present = questions.operands.significand, questions.present
        most = np.where(present, units, units[:, :1])
        span = Numbers(np.ptp(most, axis=1), questions.operands.exponent[:, 0])
        doubtful = magnitude(span) < LOWEST_EXPONENT + 1
    keep = np.ones(len(questions), np.bool_)
    rows = np.flatnonzero(doubtful)
    twin = replace(questions.where(rows), task=_TWINS[questions.task])
    keep[rows] = in_range(answers.numbers(twin, max_digits))
    return keep


def _operands(questions: Questions) -> pa.ListArray:
    """The operands of each row as plain decimals."""
    offsets = np.r_[0, np.cumsum(questions.length)].astype(np.int32)
    texts = plain(questions.operands.where(questions.present))
    return pa.ListArray.from_arrays(pa.array(offsets), texts)


def _arithmetic_difficulty(
    questions: Questions, values: Numbers, operands: pa.ListArray, answer: pa.Array
) -> Difficulties:
    if questions.task in _TWINS:
        return difficulty.of_moments(questions)
    if questions.task == "addition":
        return difficulty.of_text(questions, operands)
    columns = [Numbers(*(part[:, i] for part in questions.operands)) for i in (0, 1)]
    texts = [operands.values[i::2] for i in (0, 1)]
    counts = [difficulty.nonzero_digits(n, t) for n, t in zip(columns, texts, strict=True)]
    if questions.task in ("division", "exponentiation"):
        counts.append(difficulty.nonzero_digits(values, answer))
    combine = np.prod if questions.task == "exponentiation" else np.sum
    return Difficulties(*(combine(part, axis=0) for part in zip(*counts, strict=True)))


def _comparison(questions: Questions, operands: pa.ListArray) -> tuple[pa.Array, Difficulties]:
    """Answers and difficulties of minmax, interval and sorting."""
    ranking = answers.order(questions)
    if questions.task == "sorting":
        delta = difficulty.of_text(questions, operands)
    else:
        delta = difficulty.of_comparison(questions, ranking)
    if questions.task == "interval":
        letters = pa.array(list(LETTERS))
        return letters.take(pa.array(answers.interval(questions))), delta
    offsets = np.asarray(operands.offsets)
    rows, last = np.arange(len(questions)), questions.length - 1
    backward = questions.operator == 1
    if questions.task == "minmax":
        chosen = offsets[:-1] + ranking[rows, np.where(backward, last, 0)]
        return operands.values.take(pa.array(chosen)), delta
    ranking = _descending_where(backward, ranking, questions)
    chosen = (offsets[:-1, None] + ranking)[questions.present]
    return pa.ListArray.from_arrays(operands.offsets, operands.values.take(pa.array(chosen))), delta


def _descending_where(backward: np.ndarray, ranking: Ints, questions: Questions) -> Ints:
    """The ranking with some rows in descending order; absent operands stay behind."""
    columns = np.arange(ranking.shape[1])
    mirrored = np.where(questions.present, questions.length[:, None] - 1 - columns, columns)
    turned = np.take_along_axis(ranking, mirrored, axis=1)
    return np.where(backward[:, None], turned, ranking)


def _prompts(questions: Questions, operands: pa.ListArray) -> pa.Array:
    """The wording of each question, worked out for all questions of one shape at a time."""
    shapes = questions.operator * 8 + (questions.length if questions.task == "interval" else 0)
    parts, rows = [], []
    for shape in np.unique(shapes):
        group = np.flatnonzero(shapes == shape)
        operator = TASKS[questions.task].operators[shape // 8]
        parts.append(_worded(questions.task, operator, operands.take(pa.array(group))))
        rows.append(group)
    if not parts:
        return pa.array([], pa.string())
    back = np.argsort(np.concatenate(rows), kind="stable")
    return pa.concat_arrays(parts).take(pa.array(back))


def _worded(task: str, operator: str, operands: pa.ListArray) -> pa.Array:
    """The wording of questions with one operator and, but for lists, one number of operands."""
    if task in (*_TWINS, "minmax", "sorting"):
        columns = [pc.binary_join(operands, ", ")]
    else:
        width = len(operands.values) // len(operands)
        values = operands.flatten()
        columns = [values[i::width] for i in range(width)]
    # Stand-ins from a private plane of Unicode show where the wording puts each operand.
    marks = [chr(0xE000 + i) for i in range(len(columns))]
    wording = prompts().phrase(task, operator, marks)
    places = [i for i, character in enumerate(wording) if character in marks]
    pieces: list[pa.Array | str] = [wording[: places[0]]]
    for place, following in pairwise([*places, len(wording)]):
        pieces += [columns[ord(wording[place]) - 0xE000], wording[place + 1 : following]]
    return pc.binary_join_element_wise(*pieces, "")


def _ids(task: str, hashes: Hashes) -> pa.Array:
    digits = _HEX[hashes.astype(">u8").view(np.uint8).reshape(len(hashes), 8)]
    return pc.binary_join_element_wise(f"{task}-", fixed_width(digits.reshape(-1, 16)), "")


def _constant(text: str, rows: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(rows, np.int64)))


def _struct(**columns: Ints) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array(c) for c in columns.values()], list(columns))
