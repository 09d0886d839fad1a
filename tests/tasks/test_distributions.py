"""Distributions of the dataset card for pairs of operands and powers, tested on raw attempts.

The sample is every attempt, before any is dropped for its range, so each distribution is exact;
`test_list_distributions.py` and `test_shapes.py` test what is dropped. The distributions are
derived here independently, from `datasets/README.md` alone.

False alarms: seeds are fixed, so every run is the same. With a fresh seed each comparison of a
correct sampler fails with probability 1e-6 (`ALPHA`). This file makes 244 comparisons, the list
distributions 314, the shapes 16 and 93 at 5e-8: together a false alarm in one of 1,700 seeds.
Assertions about supports and exact relations have none.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import islice, product

import numpy as np
import pytest
from scipy import stats

from numbench.tasks import PAPER_TASKS
from numbench.tasks.base import SamplingSettings
from numbench.tasks.random_words import attempts
from numbench.vectorized.questions import Questions
from tests.tasks.distributions import (
    FloatArray,
    Operand,
    attempts_at,
    counted,
    follows,
    follows_cdf,
    follows_uniform,
    independent,
    operand,
    rank,
    spread_out,
    stream_of,
    tenths,
    texts,
)

pytestmark = pytest.mark.slow

MAGNITUDES = range(-14, 15)
FACTORS = ("addition", "multiplication", "division")
DIGITS = (3, 15, 17)


def drawn(task: str, max_digits: int) -> tuple[Operand, Operand]:
    """Return the two numbers that the sampler draws: operands, or quotient and divisor."""
    questions = attempts_at(task, max_digits)
    first, second = operand(questions, 0), operand(questions, 1)
    return (quotient(questions, first, second), second) if task == "division" else (first, second)


def quotient(questions: Questions, dividend: Operand, divisor: Operand) -> Operand:
    """Return quotients computed from dividends, exact for `recovered` rows.

    Of quotients with max_digits digits, rounding the product may hide the last digit and, once
    in 10^max_digits cases, the magnitude.
    """
    digits = questions.params["digits_quotient"]
    ratio = dividend.size.astype(np.longdouble) / divisor.size
    power = np.floor(np.log10(ratio)).astype(np.int64)
    scaled = np.rint(ratio * np.longdouble(10) ** (digits - 1 - power)).astype(np.int64)
    carried = scaled == 10**digits
    scaled = np.where(carried, scaled // 10, scaled)
    exponents = dividend.magnitude - dividend.digits - divisor.magnitude + divisor.digits
    return Operand(scaled, digits, power + carried + exponents)


def recovered(numbers: tuple[Operand, Operand], max_digits: int) -> tuple[Operand, Operand]:
    """Return the rows in which a dividend in max_digits digits determines the quotient.

    It is off by at most half a unit of its last digit, which is less than half a unit of a
    quotient of fewer digits.
    """
    short = numbers[0].digits < max_digits
    a, b = (Operand(*(part[short] for part in number)) for number in numbers)
    return a, b


def pair_digit_law(max_digits: int) -> FloatArray:
    """Return masses of (p₁, p₂): a uniform sum, a triangular split of it, a random swap."""
    law = np.zeros((max_digits, max_digits))
    for together in range(2, 2 * max_digits + 1):
        low, high = -(-together // 2), min(together - 1, max_digits)
        width = high + 1 - low
        edges = stats.triang.cdf(np.arange(width + 1), 1 / width, scale=width)
        for longer, mass in zip(range(low, high + 1), np.diff(edges), strict=True):
            law[longer - 1, together - longer - 1] += mass / 2
            law[together - longer - 1, longer - 1] += mass / 2
    return law / (2 * max_digits - 1)


def closer_of_two_law() -> FloatArray:
    """Return masses of (x₁, x₂): x₂ the closer to x₁ of two uniform draws, randomly swapped."""
    law = np.zeros((29, 29))
    for x1, a, b in product(range(29), repeat=3):
        x2 = min((a, b), key=lambda x: abs(x - x1))
        law[x1, x2] += 1
    return (law + law.T) / 2


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", FACTORS)
def test_digits_of_a_pair_have_a_uniform_sum_with_a_triangular_split(
    task: str, max_digits: int
) -> None:
    questions = attempts_at(task, max_digits)
    names = (
        ("digits_quotient", "digits_divisor") if task == "division" else ("digits_1", "digits_2")
    )
    a, b = (questions.params[name] for name in names)
    follows(counted(a, b, low=1, shape=(max_digits, max_digits)), pair_digit_law(max_digits))
    together = counted(a + b, low=2, shape=(2 * max_digits - 1,))
    follows_uniform(together)
    longer = (a > b).astype(np.int64)[a != b]
    follows_uniform(counted(longer, shape=(2,)))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", ["addition", "multiplication"])
def test_operands_have_the_digits_and_magnitudes_that_were_drawn(
    task: str, max_digits: int
) -> None:
    questions = attempts_at(task, max_digits)
    for column in (0, 1):
        number = operand(questions, column)
        assert (number.digits == questions.params[f"digits_{column + 1}"]).all()
        assert (number.magnitude == questions.params[f"exponent_{column + 1}"]).all()


@pytest.mark.parametrize("max_digits", DIGITS)
def test_one_magnitude_of_a_sum_is_the_closer_of_two_draws(max_digits: int) -> None:
    a, b = drawn("addition", max_digits)
    table = counted(a.magnitude, b.magnitude, low=-14, shape=(29, 29))
    follows(table, closer_of_two_law())
    distance = counted(np.abs(a.magnitude - b.magnitude), shape=(29,))
    by_distance = np.abs(np.subtract.outer(np.arange(29), np.arange(29)))
    law = np.bincount(by_distance.ravel(), closer_of_two_law().ravel()).astype(np.float64)
    follows(distance, law)


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", ["multiplication", "division"])
def test_factors_have_uniform_and_independent_magnitudes(task: str, max_digits: int) -> None:
    a, b = drawn(task, max_digits)
    if task == "division":
        a, b = recovered((a, b), max_digits)
    table = counted(a.magnitude, b.magnitude, low=-14, shape=(29, 29))
    follows_uniform(table)
    follows_uniform(table.sum(0))
    follows_uniform(table.sum(1))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", [*FACTORS, "exponentiation"])
def test_significands_are_uniform_and_never_end_in_zero(task: str, max_digits: int) -> None:
    if task == "exponentiation":
        columns: tuple[Operand, ...] = (operand(attempts_at(task, max_digits), 0),)
    else:
        columns = drawn(task, max_digits)
    if task == "division":
        columns = (recovered(drawn(task, max_digits), max_digits)[0], columns[1])
    for number in columns:
        sizes, digits = number.size, number.digits
        even = spread_out(*rank(sizes, digits))
        follows_cdf(even, "uniform")
        by_digits = counted(digits, tenths(even), low=(1, 0), shape=(int(digits.max()), 10))
        follows(by_digits, np.repeat(by_digits.sum(1, keepdims=True), 10, 1).astype(float))
        leading = sizes // 10 ** (digits - 1)
        several = digits > 1
        follows_uniform(counted(leading[several], sizes[several] % 10, low=1, shape=(9, 9)))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", FACTORS)
def test_signs_have_the_shares_of_the_paper(task: str, max_digits: int) -> None:
    questions = attempts_at(task, max_digits)
    signs = [operand(questions, column).negative for column in (0, 1)]
    follows(counted(*signs, shape=(2, 2)), np.array([[0.4, 0.2], [0.2, 0.2]]))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", ["addition", "minmax", "sorting"])
def test_operators_are_uniform(task: str, max_digits: int) -> None:
    follows_uniform(counted(attempts_at(task, max_digits).operator, shape=(2,)))


@pytest.mark.parametrize("task", FACTORS)
def test_the_draws_of_a_pair_are_independent(task: str) -> None:
    questions = attempts_at(task, 15)
    a, b = drawn(task, 15)
    columns = {
        "digits": 3 * ((a.digits - 1) // 5) + (b.digits - 1) // 5,
        "magnitudes": 5 * ((a.magnitude + 14) // 6) + (b.magnitude + 14) // 6,
        "signs": 2 * operand(questions, 0).negative + operand(questions, 1).negative,
        "second significand": tenths(spread_out(*rank(b.size, b.digits)), 5),
    }
    if task != "division":
        columns["first significand"] = tenths(spread_out(*rank(a.size, a.digits), salt=1), 5)
    if task == "addition":
        columns["operator"] = questions.operator
    independent(columns)


@pytest.mark.parametrize("max_digits", DIGITS)
def test_a_dividend_is_the_product_rounded_to_max_digits(max_digits: int) -> None:
    questions = attempts_at("division", max_digits, 5000)
    dividend, divisor = operand(questions, 0), operand(questions, 1)
    result = quotient(questions, dividend, divisor)
    rounded = Context(prec=max_digits, rounding=ROUND_HALF_EVEN)
    rows = np.flatnonzero((result.digits < max_digits) & questions.valid)
    assert len(rows) > 2000
    for row in rows:
        exact = int(result.size[row]) * int(divisor.size[row])
        printed = rounded.create_decimal(exact).normalize().as_tuple().digits
        assert Decimal((0, printed, 0)) == int(dividend.size[row])


@pytest.mark.parametrize("max_digits", DIGITS)
def test_a_quotient_is_dropped_only_if_the_dividend_leaves_the_range(max_digits: int) -> None:
    questions = attempts_at("division", max_digits)
    dividend = operand(questions, 0)
    assert (questions.valid == (np.abs(dividend.magnitude) <= 14)).all()
    kept = (Operand(*(part[questions.valid] for part in n)) for n in drawn("division", max_digits))
    a, b = (number.magnitude for number in recovered((next(kept), next(kept)), max_digits))
    # These are in range for all significands, so the remaining ones must still be uniform.
    safe = (a + b >= -14) & (a + b < 14)
    sums = np.add.outer(np.arange(-14, 15), np.arange(-14, 15))
    law = ((sums >= -14) & (sums < 14)).astype(float)
    follows(counted(a[safe], b[safe], low=-14, shape=(29, 29)), law)


@pytest.mark.parametrize("max_digits", DIGITS)
def test_powers_follow_the_stated_magnitudes_digits_and_exponents(max_digits: int) -> None:
    questions = attempts_at("exponentiation", max_digits)
    base = operand(questions, 0)
    x, xi = base.magnitude, questions.params["power"]
    weights = 2.0 ** -np.abs(np.arange(-6, 7))
    follows(counted(x, low=-6, shape=(13,)), weights)
    table = counted(x, base.digits, low=(-6, 1), shape=(13, max_digits))
    follows(table, np.repeat(weights[:, None], max_digits, 1))
    law = np.zeros((13, 13))
    for index, magnitude in enumerate(range(-6, 7)):
        largest = 14 // (abs(magnitude) + 1)
        law[index, : largest - 1] = weights[index] / (largest - 1)
    follows(counted(x, xi, low=(-6, 2), shape=(13, 13)), law)


@pytest.mark.parametrize("max_digits", DIGITS)
def test_powers_roots_and_their_signs_are_uniform(max_digits: int) -> None:
    questions = attempts_at("exponentiation", max_digits)
    root, inverse = questions.params["root"], operand(questions, 1).negative
    base = operand(questions, 0)
    follows_uniform(counted(root, inverse, shape=(2, 2)))
    may_turn = (root == 0) & (base.magnitude >= 0)
    assert not base.negative[~may_turn].any()
    follows_uniform(counted(base.negative[may_turn], inverse[may_turn], shape=(2, 2)))
    columns = {
        "root": root,
        "inverse": inverse,
        "digits": (base.digits - 1) * 3 // max_digits,
        "significand": tenths(spread_out(*rank(base.size, base.digits)), 5),
        "magnitude and power": 2 * np.minimum(np.abs(base.magnitude), 2)
        + (questions.params["power"] > 3),
    }
    independent(columns)
    turned = {name: column[may_turn] for name, column in columns.items() if name != "root"}
    independent({"base's sign": base.negative[may_turn]} | turned)


@pytest.mark.parametrize("max_digits", DIGITS)
def test_exponents_are_printed_as_they_were_drawn(max_digits: int) -> None:
    questions = attempts_at("exponentiation", max_digits, 5000)
    digits = min(15, max_digits)
    powers, roots = (questions.params[name].tolist() for name in ("power", "root"))
    for row, (power, root) in enumerate(zip(powers, roots, strict=True)):
        text = texts(questions, row)[1].removeprefix("-")
        exact = Fraction(1, power) if root else Fraction(power)
        assert abs(Fraction(text) - exact) <= exact / (2 * 10 ** (digits - 1))
        assert len(text.replace(".", "").strip("0")) <= digits
        assert root or text == str(power)


@pytest.mark.parametrize("max_digits", DIGITS)
def test_only_powers_with_base_one_are_dropped(max_digits: int) -> None:
    questions = attempts_at("exponentiation", max_digits)
    base = operand(questions, 0)
    one = (base.size == 1) & (base.magnitude == 0)
    assert (questions.valid == ~one).all()
    share = 1 / (2.0 ** -np.abs(np.arange(-6, 7))).sum() / max_digits / 9
    follows(counted(one.astype(np.int64), shape=(2,)), np.array([1 - share, share]))


@pytest.mark.parametrize("max_digits", [3, 5, 15, 17])
@pytest.mark.parametrize("task", PAPER_TASKS)
def test_the_scalar_sampler_draws_the_same_questions(task: str, max_digits: int) -> None:
    """The results of these tests on vectorized samplers apply to the scalar ones too."""
    questions = attempts_at(task, max_digits, 1000)
    draws = islice(attempts(stream_of(task), PAPER_TASKS[task].words_per_attempt), len(questions))
    for row, attempt in enumerate(draws):
        problem = PAPER_TASKS[task].sample(attempt, SamplingSettings(max_digits))
        if problem is None:
            # A list is also dropped, later, where its mean or std leaves the range.
            assert not questions.valid[row] or task in ("mean", "std")
            continue
        assert questions.valid[row]
        assert problem.operator == PAPER_TASKS[task].operators[questions.operator[row]]
        assert problem.operands == texts(questions, row)
        assert problem.params == {k: int(v[row]) for k, v in questions.params.items()}
