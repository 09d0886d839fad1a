"""A second, independent computation of every answer: rationals, mpmath at 120 digits.

It shares nothing with the package: it reads the question's wording, and rounds by itself.
"""

import re
from fractions import Fraction
from typing import Any

import mpmath

NUMBER = r"-?\d+(?:\.\d+)?"


def answer(prompt: str) -> str | list[Fraction] | Fraction:
    """The answer to a question: a letter, the sorted values, or the value in 15 digits."""
    numbers = [Fraction(text) for text in re.findall(rf"(?<![\d.]){NUMBER}", prompt)]
    if prompt.startswith("What interval"):
        return _interval(prompt)
    if prompt.startswith("Sort"):
        return sorted(numbers, reverse="descending" in prompt)
    if "minimum" in prompt or "maximum" in prompt:
        return (min if "minimum" in prompt else max)(numbers)
    if " std " in prompt:
        return _std(numbers)
    if " mean " in prompt:
        return rounded(sum(numbers, Fraction(0)) / len(numbers))
    return _binary(prompt)


def rounded(value: Fraction, digits: int = 15) -> Fraction:
    """`value` to `digits` significant digits, half to even, by integer long division."""
    if not value:
        return value
    exponent = 0
    while abs(value) * Fraction(10) ** -exponent >= 10:
        exponent += 1
    while abs(value) * Fraction(10) ** -exponent < 1:
        exponent -= 1
    unit = Fraction(10) ** (exponent - digits + 1)
    whole, rest = divmod(abs(value), unit)
    if rest * 2 > unit or (rest * 2 == unit and whole % 2):
        whole += 1
    return whole * unit * (1 if value > 0 else -1)


def _interval(prompt: str) -> str:
    match = re.search(rf"x=({NUMBER}) belong", prompt)
    assert match
    reference = Fraction(match[1])
    for letter, low, high in re.findall(
        rf"([A-F]): (?:({NUMBER}) <= )?x(?: < ({NUMBER}))?", prompt
    ):
        if (not low or Fraction(low) <= reference) and (not high or reference < Fraction(high)):
            return str(letter)
    raise AssertionError(prompt)


def _binary(prompt: str) -> Fraction:
    match = re.fullmatch(rf"What is ({NUMBER}) ([-+*/^]) ({NUMBER})\?", prompt)
    assert match, prompt
    a, b = Fraction(match[1]), Fraction(match[3])
    if match[2] == "^":
        return _power(a, b)
    exact = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}[match[2]]
    assert exact is not None
    return rounded(exact)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator == 1:
        return rounded(base ** int(exponent))
    with mpmath.workdps(120):
        real = mpmath.power(_mpf(base), _mpf(exponent))
        return rounded(_short(_fraction(real)))


def _std(numbers: list[Fraction]) -> Fraction:
    mean = sum(numbers, Fraction(0)) / len(numbers)
    variance = sum(((n - mean) ** 2 for n in numbers), Fraction(0)) / len(numbers)
    with mpmath.workdps(120):
        return rounded(_short(_fraction(mpmath.sqrt(_mpf(variance)))))


def _mpf(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def _fraction(value: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (-1 if sign else 1)


def _short(value: Fraction) -> Fraction:
    """A value computed to 120 digits, freed of its last 20: exact results become exact again."""
    return rounded(value, 100)


def check(item: Any) -> None:
    """Compare the answer of an item with the one that its question has."""
    expected = answer(item.prompt)
    if isinstance(expected, list):
        assert [Fraction(number) for number in item.answer] == expected, item.prompt
    elif isinstance(expected, Fraction):
        assert isinstance(item.answer, str)
        assert Fraction(item.answer) == expected, item.prompt
    else:
        assert item.answer == expected, item.prompt
