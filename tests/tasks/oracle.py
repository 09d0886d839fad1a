"""The scalar form of the samplers: one question at a time, in Python's integers.

It shares no code with `numbench.tasks.samplers` and draws the same questions from the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Context

from numbench.decimal_numbers import DecimalNumber, format_decimal, from_decimal
from numbench.records import Item
from numbench.tasks import TASKS, RandomWords, SampledQuestion, SamplingSettings, exact_arithmetic
from numbench.tasks.exact_arithmetic import in_range
from numbench.tasks.items import make_item, shard_of, split_of
from numbench.tasks.random_words import attempts
from numbench.tasks.shards import Shard

SIGNS = ((1, 1), (-1, 1), (1, -1), (-1, -1))
MOMENTS = ("mean", "std")


def items(shard: Shard) -> Iterator[Item]:
    """Yield the distinct items of a shard."""
    task, seen = TASKS[shard.task], set()
    for words in attempts(shard.stream, shard.words_per_attempt):
        question = sample(shard.task, words, shard.settings)
        if question is None or split_of(question.operands) != shard.split:
            continue
        if shard_of(question.operands, shard.count) != shard.index:
            continue
        item = make_item(shard.task, *question)
        if item.id in seen or (task.metric == "log_smape" and not in_range(str(item.answer))):
            continue
        seen.add(item.id)
        yield item


def sample(task: str, words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
    """Return the question of an attempt; None if it breaks a rule."""
    operators = TASKS[task].operators
    if task == "exponentiation":
        return power(words, settings.max_digits)
    if task in ("addition", "multiplication", "division"):
        return (pair if settings.max_bits is None else integer_pair)(words, settings, operators)
    if settings.max_bits is not None:
        return integer_list(words, settings, operators)
    return decimal_list(task, words, settings.max_digits, operators)


def text(significand: int, exponent: int) -> str:
    return format_decimal(DecimalNumber(significand, exponent))


def choose(words: RandomWords, operators: tuple[str, ...]) -> str:
    """Return an operator; one word is drawn even if there is no choice."""
    return operators[words.randbelow(len(operators))]


def swapped(words: RandomWords, a: int, b: int) -> tuple[int, int]:
    return (a, b) if words.randbelow(2) else (b, a)


def significand_of(words: RandomWords, digits: int) -> int:
    """Return an integer of so many digits, uniform over those with a last digit other than 0."""
    if digits == 1:
        return words.randint(1, 9)
    first = 10 ** (digits - 2)
    prefix, last = divmod(words.randbelow(9 * first * 9), 9)
    return (first + prefix) * 10 + last + 1


def pair(
    words: RandomWords, settings: SamplingSettings, operators: tuple[str, ...]
) -> SampledQuestion | None:
    """The digits of both sum to U{2 … 2·max_digits}; the larger count is triangular, mode 1."""
    total = words.randint(2, 2 * settings.max_digits)
    low, high = (total + 1) // 2, min(total - 1, settings.max_digits)
    n = high - low + 1
    larger = low + words.weighted_index([n - 1 or 1, *range(2 * n - 3, 0, -2)])
    p1, p2 = swapped(words, larger, total - larger)
    if operators == ("/",):
        quotient, x1 = significand_of(words, p1), words.randint(-14, 14) - p1 + 1
        divisor, x2 = significand_of(words, p2), words.randint(-14, 14) - p2 + 1
        rounding = Context(prec=settings.max_digits, rounding=ROUND_HALF_EVEN)
        dividend, x = from_decimal(rounding.create_decimal(quotient * divisor))
        s1, s2 = SIGNS[words.weighted_index((40, 20, 20, 20))]
        operands = text(s1 * dividend, x + x1 + x2), text(s2 * divisor, x2)
        params = {"digits_quotient": p1, "digits_divisor": p2}
        return SampledQuestion("/", operands, params) if in_range(operands[0]) else None
    operator = operators[0]
    x1, x2 = words.randint(-14, 14), words.randint(-14, 14)
    if len(operators) > 1:
        # Of two exponents, the second operand has the one closer to that of the first.
        x2 = min(x2, words.randint(-14, 14), key=lambda x: abs(x - x1))
        x1, x2 = swapped(words, x1, x2)
        operator = choose(words, operators)
    a, b = significand_of(words, p1), significand_of(words, p2)
    s1, s2 = SIGNS[words.weighted_index((40, 20, 20, 20))]
    params = {"digits_1": p1, "digits_2": p2, "exponent_1": x1, "exponent_2": x2}
    return SampledQuestion(operator, (text(s1 * a, x1 - p1 + 1), text(s2 * b, x2 - p2 + 1)), params)


def power(words: RandomWords, max_digits: int) -> SampledQuestion | None:
    """Integer powers and roots ξ ~ U{2 … ⌊14 / (|x|+1)⌋} of a base with weight 2^−|x|."""
    x = words.weighted_index([2 ** (6 - abs(x)) for x in range(-6, 7)]) - 6
    digits = words.randint(1, max_digits)
    base = significand_of(words, digits)
    xi = words.randint(2, 14 // (abs(x) + 1))
    root, inverse, negative = (words.randbelow(2) for _ in range(3))
    if text(base, x - digits + 1) == "1":
        return None
    if negative and not root and x >= 0:
        base = -base
    exponent = exact_arithmetic.reciprocal(xi, max_digits) if root else str(xi)
    params = {"digits": digits, "exponent": x, "power": xi, "root": root}
    return SampledQuestion("^", (text(base, x - digits + 1), "-" * inverse + exponent), params)


def decimal_list(
    task: str, words: RandomWords, max_digits: int, operators: tuple[str, ...]
) -> SampledQuestion | None:
    """Lists of l elements of p digits: magnitude x of the mean, spread s, sum drawn uniformly."""
    length, x = words.randint(2, 5), words.randint(-14, 14)
    orders = 17 if task in MOMENTS else 2
    s = words.randint(min(13, x - min(13, max_digits - 2)), min(x + orders, 13))
    digits = words.randint(max(2, x - s + 2), max_digits)
    unit_exponent = max(x, s) - digits + 1
    smallest = length * 10 ** (max(x, unit_exponent) - unit_exponent)
    total, radius = words.randint(smallest, 10 * smallest - 1), 10 ** (s - unit_exponent)
    half = radius * length // (2 * (length - 1))
    offsets = [words.randint(-half, half) for _ in range(5)][:length]
    shift, remainder = divmod(total - sum(offsets), length)
    units = [offset + shift + (i < remainder) for i, offset in enumerate(offsets)]

    def fits(unit: int) -> bool:
        smallest = 10 ** max(0, -14 - unit_exponent)
        return abs(unit) < 10**digits and (unit == 0 or abs(unit) >= smallest)

    if len(set(units)) == 1 or not all(map(fits, units)):
        return None
    operator = choose(words, operators) if len(operators) > 1 else operators[0]
    params = {"length": length, "exponent": x, "spread": s, "digits": digits}
    if task == "interval":
        bounds: list[int] = []
        for unit in sorted(units):
            bounds.append(max(unit, bounds[-1] + 1) if bounds else unit)
        position, step = words.randint(0, length), max(1, radius // length)
        edges = (bounds[0] - step, *bounds, bounds[-1] + step + 1)
        reference = bounds[0] - step if position == 0 else bounds[-1] + step
        if 0 < position < length:
            reference = words.randint(edges[position], edges[position + 1] - 1)
        units, params["position"] = [reference, *bounds], position
        if not all(map(fits, units)):
            return None
    operands = tuple(text(unit, unit_exponent) for unit in units)
    moments = exact_arithmetic.mean(operands), exact_arithmetic.std(operands)
    if task in MOMENTS and not all(map(in_range, moments)):
        return None
    return SampledQuestion(operator, operands, params)


def integer(words: RandomWords, settings: SamplingSettings) -> int:
    assert settings.max_bits is not None
    return words.randint(1, 2**settings.max_bits - 1)


def shift(words: RandomWords, settings: SamplingSettings) -> int:
    return words.randint(min(1, settings.max_shift), settings.max_shift)


def integer_pair(
    words: RandomWords, settings: SamplingSettings, operators: tuple[str, ...]
) -> SampledQuestion:
    a, b = integer(words, settings), integer(words, settings)
    shift_a, shift_b = shift(words, settings), shift(words, settings)
    params = {"bits_1": a.bit_length(), "bits_2": b.bit_length()}
    operator = choose(words, operators)
    if operator == "/":
        a, shift_a = a * b, shift_a + shift_b
    return SampledQuestion(operator, (text(a, -shift_a), text(b, -shift_b)), params)


def integer_list(
    words: RandomWords, settings: SamplingSettings, operators: tuple[str, ...]
) -> SampledQuestion | None:
    length = words.randint(2, 5)
    units = [integer(words, settings) for _ in range(5)][:length]
    exponent, params = -shift(words, settings), {"length": length}
    if operators == ("interval",):
        bounds, params["position"] = sorted(units), words.randint(0, length)
        edges = (0, *bounds, 2 ** (settings.max_bits or 0))
        low, high = edges[params["position"]], edges[params["position"] + 1]
        if len(set(bounds)) < length or low == high:
            return None
        units, operator = [words.randint(low, high - 1), *bounds], "interval"
    else:
        operator = choose(words, operators)
        if len(set(units)) == 1:
            return None
    return SampledQuestion(operator, tuple(text(unit, exponent) for unit in units), params)
