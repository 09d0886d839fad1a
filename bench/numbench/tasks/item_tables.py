"""Arrow tables with the fields of `Item`, built from arrays of questions.

Answers are proved roundings, and exact arithmetic for the other rows.

The difficulty δ of multiplication, division, exponentiation, mean and std is that of the paper
("Problem difficulty"), which defines none for addition and the comparison tasks. In base 2, counts
of digits are those of the float64 nearest to the number, and orders of magnitude are powers of two.

Difficulties are arrays of shape (2, rows): δ in base 10, and in base 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numbench.core.decimal_numbers import (
    SIGNIFICANT_DIGITS,
    align_decimals,
    parse_decimal,
    split_decimal,
)
from numbench.records import SCHEMA, Answer, Difficulty
from numbench.tasks import TASKS
from numbench.tasks.base import LETTERS
from numbench.tasks.decimal_arrays import (
    DecimalArray,
    ExtendedArray,
    IntArray,
    bit_length,
    count_nonzero_digits,
    digit_count,
    floor_log2,
    floor_log10,
    format_decimals,
    normalize,
    round_to_digits,
    scaled,
    write_groups,
)
from numbench.tasks.prompts import load_prompt_set
from numbench.tasks.questions import Hashes, Questions, in_range

_SAME_LISTS_TASK = {"mean": "std", "std": "mean"}
"""Tasks that share their lists: both answers of a list must be in range."""

_LIST_PROMPT_TASKS = (*_SAME_LISTS_TASK, "minmax", "sorting")
"""Tasks with all operands in one field of the prompt."""


def build_item_table(questions: Questions, hashes: Hashes) -> pa.Table:
    """Return the items of the questions with an answer in range, with the fields of `Item`."""
    task = TASKS[questions.task]
    if task.metric == "log_smape":
        values = numeric_answers(questions)
        keep = in_range(values)
        if questions.task in _SAME_LISTS_TASK:
            other = replace(questions, task=_SAME_LISTS_TASK[questions.task])
            keep &= in_range(numeric_answers(other))
        questions, values, hashes = questions.select(keep), values.select(keep), hashes[keep]
        operands = _operands(questions)
        answer = format_decimals(values)
        difficulties = _arithmetic_difficulty(questions, values, operands, answer)
    else:
        operands = _operands(questions)
        answer, difficulties = _comparison(questions, operands)
    return pa.table(
        {
            "id": _ids(questions.task, hashes),
            "task": pa.repeat(questions.task, len(questions)),
            "prompt": _prompts(questions, operands),
            "answer": answer,
            "operands": operands,
            "operator": pa.array(task.operators).take(pa.array(questions.operator)),
            "difficulty": _struct_array(("base10", "base2"), difficulties),
            "params": _struct_array(questions.params, questions.params.values()),
            "schema": pa.array(np.full(len(questions), SCHEMA)),
        }
    )


def difficulty_of(task: str, operator: str, operands: Sequence[str], answer: Answer) -> Difficulty:
    """Return the difficulty of one question of the paper, by the rules for many."""
    parsed = [*map(parse_decimal, operands)]
    numbers = [*map(split_decimal, parsed)]
    is_arithmetic = TASKS[task].metric == "log_smape"
    if task in _SAME_LISTS_TASK or not is_arithmetic:
        units, exponent = align_decimals(parsed)
        numbers = [(unit, exponent) for unit in units]
    operands_array = DecimalArray(*np.array(numbers).T[:, None])
    index = np.array([TASKS[task].operators.index(operator)])
    questions = Questions(task, operands_array, np.array([len(numbers)]), index, {})
    texts = pa.array([list(operands)])
    if is_arithmetic:
        values = DecimalArray(*np.array([split_decimal(parse_decimal(str(answer)))]).T)
        found = _arithmetic_difficulty(questions, values, texts, pa.array([str(answer)]))
    else:
        _, found = _comparison(questions, texts)
    return Difficulty(*found[:, 0].tolist())


def _operands(questions: Questions) -> pa.ListArray:
    """Return the operands of each row in plain notation."""
    offsets = np.r_[0, np.cumsum(questions.length)].astype(np.int32)
    texts = format_decimals(questions.operands.select(questions.present))
    return pa.ListArray.from_arrays(pa.array(offsets), texts)


def _comparison(questions: Questions, operands: pa.ListArray) -> tuple[pa.Array, IntArray]:
    """Return answers and difficulties of minmax, interval and sorting."""
    units, present = questions.operands.significand, questions.present
    if questions.task == "interval":
        position = ((units[:, 1:] <= units[:, :1]) & present[:, 1:]).sum(axis=1)
        letters = pa.array(list(LETTERS)).take(pa.array(position))
        return letters, _of_comparison(questions, units)
    # The elements in the order of the question, absent ones last.
    signed = np.where(questions.operator == 1, -1, 1)[:, None] * units
    order = np.argsort(np.where(present, signed, np.iinfo(np.int64).max), axis=1, kind="stable")
    offsets = np.asarray(operands.offsets)[:-1]
    if questions.task == "minmax":
        ranked = np.take_along_axis(units, order, axis=1)
        answers = operands.values.take(pa.array(offsets + order[:, 0]))
        return answers, _of_comparison(questions, ranked)
    elements = operands.values.take(pa.array((offsets[:, None] + order)[present]))
    answers = pa.ListArray.from_arrays(operands.offsets, elements)
    return answers, _of_printed_digits(questions, operands)


def _prompts(questions: Questions, operands: pa.ListArray) -> pa.Array:
    """Return the prompt of each question, formatted for all questions of one shape together."""
    shapes = questions.operator * 8 + (questions.length if questions.task == "interval" else 0)

    def write(shape: int, rows: IntArray) -> pa.Array:
        operator = TASKS[questions.task].operators[shape // 8]
        return _format_prompts(questions.task, operator, operands.take(pa.array(rows)))

    return write_groups(shapes, write)


def _format_prompts(task: str, operator: str, operands: pa.ListArray) -> pa.Array:
    """Return the prompts of questions with one operator and one number of operands (or lists)."""
    if task in _LIST_PROMPT_TASKS:
        columns = [pc.binary_join(operands, ", ")]
    else:
        width = len(operands.values) // len(operands)
        values = operands.flatten()
        columns = [values[i::width] for i in range(width)]
    # Private-use characters mark the positions of the operands in the prompt.
    marked = {chr(0xE000 + i): column for i, column in enumerate(columns)}
    prompt = load_prompt_set().format_question(task, operator, list(marked))
    pieces = [marked.get(piece, piece) for piece in re.split(f"([{''.join(marked)}])", prompt)]
    return pc.binary_join_element_wise(*pieces, "")


def _ids(task: str, hashes: Hashes) -> pa.Array:
    digits = pa.py_buffer(hashes.astype(">u8").tobytes().hex().encode())
    offsets = pa.py_buffer(np.arange(len(hashes) + 1, dtype=np.int32) * 16)
    texts = pa.StringArray.from_buffers(len(hashes), offsets, digits)
    return pc.binary_join_element_wise(f"{task}-", texts, "")


def _struct_array(names: Iterable[str], columns: Iterable[IntArray]) -> pa.StructArray:
    return pa.StructArray.from_arrays([*map(pa.array, columns)], [*names])


def numeric_answers(questions: Questions) -> DecimalArray:
    """Return the answers of arithmetic questions, rounded to 15 significant digits."""
    values, unit_exponent = _VALUES[questions.task](questions)
    (significand, exponent), proved = round_to_digits(values, SIGNIFICANT_DIGITS)
    answers = DecimalArray(significand, exponent + unit_exponent)
    _answer_exactly(questions, np.flatnonzero(~proved), answers)
    return answers


def _answer_exactly(questions: Questions, rows: IntArray, answers: DecimalArray) -> None:
    """Replace the answers of some rows by those of exact arithmetic."""
    task, subset = TASKS[questions.task], questions.select(rows)
    texts = iter(format_decimals(subset.operands.select(subset.present)).to_pylist())
    for row, length, operator in zip(rows, subset.length, subset.operator, strict=True):
        operands = [next(texts) for _ in range(length)]
        answer = parse_decimal(str(task.exact_answer(task.operators[operator], operands)))
        answers.significand[row], answers.exponent[row] = split_decimal(answer)


# Values in extended precision, and the exponents of their units. Every step has a relative error
# of half a unit of the 64th bit; the exponent of a root, times the logarithm of its base, adds
# less than ten. Sums are exact, or of operands too different in magnitude to cancel.

_Values = tuple[ExtendedArray, IntArray]


def _columns(questions: Questions) -> tuple[ExtendedArray, ExtendedArray]:
    a, b = questions.operands.significand.T.astype(np.longdouble)
    return a, b


def _sum(questions: Questions) -> _Values:
    exponent = questions.operands.exponent
    unit_exponent = exponent.min(axis=1)
    a, b = scaled(questions.operands.significand, exponent - unit_exponent[:, None]).T
    return np.where(questions.operator == 1, a - b, a + b), unit_exponent


def _product(questions: Questions) -> _Values:
    a, b = _columns(questions)
    return a * b, questions.operands.exponent.sum(axis=1)


def _quotient(questions: Questions) -> _Values:
    a, b = _columns(questions)
    return a / b, -np.diff(questions.operands.exponent, axis=1)[:, 0]


def _power(questions: Questions) -> _Values:
    """Return powers; the units of an integer power are those of its base, to that power."""
    base, exponent = _columns(questions)
    base_exponent, root_exponent = questions.operands.exponent.T
    is_root = root_exponent < 0
    size = scaled(np.abs(base), np.where(is_root, base_exponent, 0))
    value = size ** scaled(exponent, root_exponent)
    is_negative = (base < 0) & (exponent % 2 == 1)
    power = np.where(is_root, 0, questions.operands.significand[:, 1])
    return np.where(is_negative, -value, value), base_exponent * power


def _mean(questions: Questions) -> _Values:
    total = questions.operands.significand.sum(axis=1).astype(np.longdouble)
    return total / questions.length, questions.operands.exponent[:, 0]


def _std(questions: Questions) -> _Values:
    """Return √(Σ (l·kᵢ − T)² / l) / l for the units kᵢ, their sum T and their number l."""
    units, length = questions.operands.significand, questions.length
    deviations = length[:, None] * units - units.sum(axis=1)[:, None]
    extended = np.where(questions.present, deviations, 0).astype(np.longdouble)
    root = np.sqrt((extended * extended).sum(axis=1) / length)
    return root / length, questions.operands.exponent[:, 0]


_VALUES: dict[str, Callable[[Questions], _Values]] = {
    "addition": _sum,
    "multiplication": _product,
    "division": _quotient,
    "exponentiation": _power,
    "mean": _mean,
    "std": _std,
}


def _arithmetic_difficulty(
    questions: Questions, values: DecimalArray, operands: pa.ListArray, answer: pa.Array
) -> IntArray:
    """Return δ of the arithmetic tasks.

    Of multiplication and division, it is the number of non-zero digits of operands and quotient; of
    a power, the product of those of base, exponent and result.
    """
    if questions.task in _SAME_LISTS_TASK:
        return _of_moments(questions)
    if questions.task == "addition":
        return _of_printed_digits(questions, operands)
    columns = [DecimalArray(*(part[:, i] for part in questions.operands)) for i in (0, 1)]
    texts = [operands.values[i::2] for i in (0, 1)]
    counts = [_nonzero_digits(n, t) for n, t in zip(columns, texts, strict=True)]
    if questions.task in ("division", "exponentiation"):
        counts.append(_nonzero_digits(values, answer))
    combine = np.prod if questions.task == "exponentiation" else np.sum
    return np.asarray(combine(counts, axis=0))


def _nonzero_digits(values: DecimalArray, texts: pa.Array) -> IntArray:
    """Count the non-zero decimal and binary digits of numbers, given as values and as text."""
    decimal = count_nonzero_digits(np.abs(values.significand))
    bits = np.asarray(pc.cast(texts, pa.float64())).view(np.uint64)
    ones = np.bitwise_count(bits & np.uint64((1 << 52) - 1)).astype(np.int64)
    return np.stack([decimal, np.where(values.significand == 0, 0, ones + 1)])


def _of_printed_digits(questions: Questions, operands: pa.ListArray) -> IntArray:
    """Return δ of addition and sorting: the printed digits of all operands."""
    numbers = normalize(questions.operands.select(questions.present))
    whole = np.maximum(digit_count(numbers.significand) + numbers.exponent, 1)
    decimal = whole + np.maximum(-numbers.exponent, 0)
    values = np.abs(np.asarray(pc.cast(operands.values, pa.float64())))
    significands, exponents = np.frexp(values)
    units = (significands * (1 << 53)).astype(np.int64)
    # The lowest set bit of the significand is the last binary place to be counted.
    lowest = bit_length(np.maximum(units & -units, 1)) - 1
    places = np.where(units == 0, 0, np.maximum(53 - lowest - exponents, 0))
    binary = np.maximum(exponents, 1) + places
    rows = np.repeat(np.arange(len(questions)), questions.length)
    return _sum_by_row([decimal, binary], rows, len(questions))


def _of_moments(questions: Questions) -> IntArray:
    """Return δ of mean and std: s − x + 15 for the exponent x of the mean and the spread s.

    10^x ≤ |mean| < 10^(x+1), and s is the smallest integer with every element in mean ± 10^s. In
    base 2, δ is ⌈log2(largest deviation / |mean|)⌉ + 50, since 15 decimal digits are 50 binary
    digits. A list with mean 0 is treated as if its sum were one unit of its last digit.
    """
    units, length = questions.operands.significand, questions.length
    total = units.sum(axis=1)
    deviations = np.abs(length[:, None] * units - total[:, None])
    deviation = np.where(questions.present, deviations, 0).max(axis=1)
    size = np.maximum(np.abs(total), 1)
    base10 = -floor_log10(length, deviation) - floor_log10(size, length) + 15
    base2 = 50 - floor_log2(size, deviation)
    return np.maximum([base10, base2], 0)


def _of_comparison(questions: Questions, units: IntArray) -> IntArray:
    """Return δ of minmax and interval: the digits that distinguish the first unit from others.

    These are the orders of magnitude from the larger of |a|, |b| down to |a − b|, both included; in
    base 2, the powers of two of their ratio. Equal numbers count to their last non-zero digit.
    """
    a, b = np.broadcast_arrays(units[:, :1], units[:, 1:])
    where = np.nonzero(questions.present[:, 1:])
    x, y, unit_exponent = a[where], b[where], questions.operands.exponent[where[0], 0]
    larger = np.maximum(np.maximum(np.abs(x), np.abs(y)), 1)
    same = np.flatnonzero(x == y)
    normalized = normalize(DecimalArray(x[same], unit_exponent[same]))
    larger[same] = np.maximum(np.abs(normalized.significand), 1)
    difference = np.maximum(np.abs(x - y), 1)
    base10 = digit_count(larger) - digit_count(difference) + 1
    base2 = floor_log2(larger, difference) + 1
    return _sum_by_row(np.maximum([base10, base2], 1), where[0], len(units))


def _sum_by_row(both: Iterable[IntArray], rows: IntArray, count: int) -> IntArray:
    """Return the sums of the values in both bases of each of `count` rows."""
    return np.stack([np.bincount(rows, values, count) for values in both]).astype(np.int64)
