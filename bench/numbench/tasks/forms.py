"""Forms of numbers: 41 pairs of a form and a task, with numbers of any size.

The forms are integers, decimals, fractions and scientific notation. The pairs are those of the NUPA
test (Yang et al., "Number Cookbook", ICLR 2025, arXiv 2411.03766); numbers and wordings are not.
The size is the number of digits: of each number, of numerator and denominator, or of the
significand. Answers are exact, and have the form that the question asks for.

A fraction is two operands, numerator and denominator. A number in scientific notation is one
operand in plain notation.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import gcd

from numbench.core.decimal_numbers import align_decimals, format_decimal, parse_decimal
from numbench.tasks.base import Form, OperandFormat, SizeAxis, Task
from numbench.tasks.exact_arithmetic import evaluate_in_full, to_decimal
from numbench.tasks.paper_tasks import extremum
from numbench.tasks.random_words import RandomWords
from numbench.tasks.scaled import (
    OPERATIONS,
    QUESTIONS,
    sample_comparison,
    sample_integer,
    sample_pair,
    scaled_task,
    words_of,
)

_SIZES = ", ".join(map(str, range(2, 21)))

Operands = tuple[str, ...]
Sampler = Callable[[RandomWords, int], Operands | None]
Solver = Callable[[str, Sequence[str]], str]

MAX_PLACES = 100
"""The largest number of decimals of a sampled decimal number."""

MAX_POWER = 30
"""The largest absolute exponent of a number in scientific notation."""

MAX_POWER_DIFFERENCE = 2
"""The largest difference of the exponents of two numbers of a question."""


def _integer(text: str) -> int:
    """Return an integer of any length; `int` has a limit."""
    return int(parse_decimal(text))


def _text(number: int) -> str:
    return str(Decimal(number))


def to_scientific(number: str) -> str:
    """Return a number in scientific notation: `1.25e-7`, without superfluous zeros."""
    significand, _, exponent = f"{Decimal(number):e}".partition("e")
    if "." in significand:
        significand = significand.rstrip("0").rstrip(".")
    return f"{significand}e{int(exponent)}"


def to_plain(number: str) -> str:
    """Return a number in plain notation."""
    return format_decimal(parse_decimal(number))


def _digits(number: str) -> str:
    return number.replace(".", "")


# Samplers. Each digit of a number counts: the last one of a decimal or a significand is not 0.
def _significand(words: RandomWords, digits: int) -> str:
    number, last = sample_integer(words, digits), str(words.randint(1, 9))
    return number[:-1] + last


def _decimal(words: RandomWords, size: int) -> str:
    """Draw a decimal above 1 with the point at a uniform position."""
    digits, places = _significand(words, size), words.randint(1, min(size - 1, MAX_PLACES))
    return f"{digits[:-places]}.{digits[-places:]}"


def _numbers(*draw: Callable[[RandomWords, int], str]) -> Callable[[RandomWords, int], Operands]:
    """Return the sampler of one number from each of some functions."""
    return lambda words, size: tuple(each(words, size) for each in draw)


_decimals = _numbers(_decimal, _decimal)


def _close_decimals(words: RandomWords, size: int) -> Operands | None:
    """Draw two decimals with the same digits up to a position; either may be longer after it."""
    first = _decimal(words, size)
    whole, places = first.split(".")
    shared = words.randbelow(len(places))
    rest = _significand(words, words.randint(1, max(1, size - len(whole) - shared)))
    second = f"{whole}.{places[:shared]}{rest}"
    if second == first:
        return None
    return (second, first) if words.randbelow(2) else (first, second)


def _scientific_of(words: RandomWords, size: int) -> Operands:
    power = words.randint(-MAX_POWER, MAX_POWER)
    return (to_plain(f"{_significand(words, size)}e{power - size + 1}"),)


def _scientifics(words: RandomWords, size: int) -> Operands | None:
    """Draw two numbers whose exponents differ by at most MAX_POWER_DIFFERENCE."""
    (first,), other = _scientific_of(words, size), _significand(words, size)
    power = Decimal(first).adjusted()
    power += words.randint(-MAX_POWER_DIFFERENCE, MAX_POWER_DIFFERENCE)
    second = to_plain(f"{other}e{power - size + 1}")
    return None if first == second else (first, second)


def _fraction(words: RandomWords, size: int) -> Operands | None:
    pair = sample_pair(words, size)
    return pair if gcd(*map(_integer, pair)) == 1 else None


def _fractions(words: RandomWords, size: int) -> Operands | None:
    first, second = _fraction(words, size), _fraction(words, size)
    return first + second if first and second and first != second else None


def _reducible(words: RandomWords, size: int) -> Operands:
    """Draw two integers with a common factor."""
    factor, smallest = words.randint(2, 9), 10 ** (size - 1)
    numbers = [number - number % factor for number in map(_integer, sample_pair(words, size))]
    return tuple(_text(number + factor * (number < smallest)) for number in numbers)


def _half_divisor(words: RandomWords, size: int) -> Operands:
    """Draw a dividend, and a divisor with half as many digits."""
    return sample_integer(words, size), sample_integer(words, -(-size // 2))


def _finite_fraction(words: RandomWords, size: int) -> Operands | None:
    """Draw a fraction in lowest terms whose denominator has no prime factors but 2 and 5."""
    denominator = 5 ** words.randbelow(1 + size * 10 // 7)
    missing = (10 ** (size - 1) // denominator).bit_length()
    denominator <<= max(0, missing - 1) + words.randbelow(4)
    numerator = sample_integer(words, size)
    is_lowest = gcd(_integer(numerator), denominator) == 1
    is_sized = 10 ** (size - 1) <= denominator < 10**size
    return (numerator, _text(denominator)) if is_sized and is_lowest else None


def _round_integer(words: RandomWords, size: int) -> Operands:
    """Draw an integer with zeros after a uniform number of digits."""
    return (_significand(words, words.randint(1, size)).ljust(size, "0"),)


def _any_decimal(words: RandomWords, size: int) -> Operands:
    """Draw a decimal, above 1 or below, then with zeros after the point; all zeros are counted."""
    if words.randbelow(2):
        return (_decimal(words, size),)
    return (f"0.{_significand(words, words.randint(1, size - 1)).rjust(size - 1, '0')}",)


def _with(
    draw_number: Callable[[RandomWords, int], str],
    draw: Callable[[RandomWords, str, int], int | str],
) -> Sampler:
    """Return the sampler of a number and an argument, from words, number and size; 0: discard."""

    def sample(words: RandomWords, size: int) -> Operands | None:
        number = draw_number(words, size)
        argument = draw(words, number, size)
        return (number, str(argument)) if argument else None

    return sample


def _position(words: RandomWords, _number: str, size: int) -> int:
    return words.randint(1, size)


def _one_of_its_digits(words: RandomWords, number: str, size: int) -> str:
    return number[words.randbelow(size)]


def _figures(words: RandomWords, number: str, size: int) -> int:
    """Draw how many significant digits to keep; 0 for a tie."""
    kept = words.randint(1, size - 1)
    return 0 if kept == size - 1 and number.endswith("5") else kept


# Solvers: the exact answer from operator and operands.
def _scientific_value(operator: str, operands: Sequence[str]) -> str:
    return to_scientific(evaluate_in_full(operator, operands))


_FRACTION_OPERATIONS = OPERATIONS | {"/": op.truediv, "maximum": max, "minimum": min}


def _fraction_value(operator: str, operands: Sequence[str]) -> str:
    """Return the value of an operator on two fractions, or on two integers, in lowest terms."""
    numbers = [*map(_integer, operands)]
    pairs = (numbers[:2], numbers[2:]) if len(numbers) > 2 else (numbers[:1], numbers[1:])
    value = _FRACTION_OPERATIONS[operator](*(Fraction(*pair) for pair in pairs))
    return f"{_text(value.numerator)}/{_text(value.denominator)}"


def _whole_division(operator: str, operands: Sequence[str]) -> str:
    a, b = map(_integer, operands)
    return _text(a // b if operator == "//" else a % b)


_DIGIT_OPERATIONS: dict[str, Callable[[Sequence[int]], int]] = {
    "larger": max, "smaller": min, "sum": lambda pair: sum(pair) % 10,
}  # fmt: skip


def _digitwise(operator: str, operands: Sequence[str]) -> str:
    """Return what an operator makes of the two digits at each place."""
    units, exponent = align_decimals(map(parse_decimal, operands))
    texts = [*map(_text, units)]
    width = max(map(len, texts))
    pairs = zip(*(map(int, text.zfill(width)) for text in texts), strict=True)
    digits = "".join(str(_DIGIT_OPERATIONS[operator](pair)) for pair in pairs)
    return to_plain(f"{digits}e{exponent}")


def _of_digits(operator: str, operands: Sequence[str]) -> str:
    """Return the number of digits, the digit at a position, or how often a digit occurs."""
    digits, *arguments = map(_digits, operands)
    if operator == "length":
        return str(len(digits))
    (argument,) = arguments
    return str(digits.count(argument)) if operator == "count" else digits[int(argument) - 1]


def _rounded(_operator: str, operands: Sequence[str]) -> str:
    return to_scientific(str(Context(prec=int(operands[1])).plus(to_decimal(operands[0]))))


_SCIENTIFIC = OperandFormat(
    lambda _operator, operands: dict(zip("ab", map(to_scientific, operands), strict=False)),
    lambda _operator, fields: tuple(to_plain(fields[name]) for name in sorted(fields)),
)

_SHORT_NAMES = {"integer": "int", "decimal": "dec", "fraction": "frac", "scientific": "sci"}
_CHANCES = {"maximum": 0.5, "minimum": 0.5, "digit": 0.1}


def _pair(name: str, sample: Sampler, solve: Solver, growth: int, answer: Form = "plain") -> Task:
    """Return the task of a pair. growth: digits of the answer per digit of size, at most."""
    (operator,), (kind, _, form) = QUESTIONS[name], name.rpartition("_")
    is_scientific = form == "scientific"

    def sample_operands(words: RandomWords, size: int) -> Operands | None:
        operands = sample(words, size)
        # An integer is not asked for as a fraction.
        is_integer = operands and answer == "fraction" and solve(operator, operands).endswith("/1")
        return None if is_integer else operands

    def size_of(operands: Sequence[str]) -> int:
        digits = map(_digits, operands)
        return max(len(each.strip("0") if is_scientific else each) for each in digits)

    # In plain notation, a number in scientific notation has more decimals than digits.
    largest, zeros = (256, MAX_POWER) if is_scientific else (4096, 0)
    return scaled_task(
        name,
        f"{kind.replace('_', ' ').capitalize()} {_SHORT_NAMES[form]}",
        sample_operands,
        SizeAxis("digits", _words, lambda n: growth * n + 12 + zeros, size_of, 2, largest, _SIZES),
        answer,
        answer,
        solve,
        chance_accuracy=lambda _size: _CHANCES.get(operator, 0.0),
        operand_format=_SCIENTIFIC if is_scientific else None,
    )


def _words(size: int) -> int:
    return 4 * words_of(size) + 10


def _as_scientific(operator: str, operands: Sequence[str]) -> str:
    """Return the operand, or the larger or smaller one."""
    return to_scientific(operands[0] if operator == "copy" else extremum(operator, operands))


def _pairs(
    names: str, sample: Sampler, solve: Solver, growth: int, answer: Form = "plain"
) -> list[Task]:
    return [_pair(name, sample, solve, growth, answer) for name in names.split()]


_TASKS: list[Task] = [
    *_pairs("add_integer subtract_integer", sample_pair, evaluate_in_full, 1),
    *_pairs("multiply_integer", sample_pair, evaluate_in_full, 2),
    *_pairs("add_decimal subtract_decimal multiply_decimal", _decimals, evaluate_in_full, 2),
    *_pairs(
        "add_fraction subtract_fraction multiply_fraction divide_fraction",
        _fractions, _fraction_value, 4, "fraction",
    ),
    *_pairs("add_scientific subtract_scientific", _scientifics, _scientific_value, 1, "scientific"),
    *_pairs("multiply_scientific", _scientifics, _scientific_value, 2, "scientific"),
    *_pairs("divide_integer", _reducible, _fraction_value, 2, "fraction"),
    *_pairs("floor_divide_integer modulo_integer", _half_divisor, _whole_division, 1),
    *_pairs("max_integer min_integer", sample_comparison, extremum, 1),
    *_pairs("max_decimal min_decimal", _close_decimals, extremum, 1),
    *_pairs("max_fraction min_fraction", _fractions, _fraction_value, 2, "fraction"),
    *_pairs("max_scientific min_scientific", _scientifics, _as_scientific, 1, "scientific"),
    *_pairs("digit_max_integer digit_min_integer digit_sum_integer", sample_pair, _digitwise, 1),
    *_pairs("digit_max_decimal digit_min_decimal digit_sum_decimal", _decimals, _digitwise, 2),
    *_pairs("get_digit_integer", _with(_significand, _position), _of_digits, 0),
    *_pairs("get_digit_decimal", _with(_decimal, _position), _of_digits, 0),
    *_pairs("length_integer", _numbers(_significand), _of_digits, 0),
    *_pairs("length_decimal", _numbers(_decimal), _of_digits, 0),
    *_pairs("count_integer", _with(_significand, _one_of_its_digits), _of_digits, 0),
    *_pairs("to_decimal_fraction", _finite_fraction, evaluate_in_full, 5),
    *_pairs("to_decimal_scientific", _scientific_of, lambda _operator, one: one[0], 1),
    *_pairs("to_scientific_integer", _round_integer, _as_scientific, 1, "scientific"),
    *_pairs("to_scientific_decimal", _any_decimal, _as_scientific, 1, "scientific"),
    *_pairs("round_integer", _with(_significand, _figures), _rounded, 1, "scientific"),
    *_pairs("round_decimal", _with(_decimal, _figures), _rounded, 1, "scientific"),
]  # fmt: skip
_ORDER = [*QUESTIONS]

FORM_TASKS: dict[str, Task] = {
    task.name: task for task in sorted(_TASKS, key=lambda task: _ORDER.index(task.name))
}
"""The tasks by name, in the order of their questions: a kind of question, and a form of numbers."""
