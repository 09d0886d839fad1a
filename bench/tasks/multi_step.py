"""Multi-step arithmetic: exponentiation, mean, standard deviation."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

from bench.numerals import Number, number_of, plain
from bench.tasks import difficulty, lists, numbers, truth
from bench.tasks.base import Problem, Sampling, Task
from bench.tasks.draws import Draws

REACH = 17
EXPONENT_SPAN = 6
EXPONENT_WEIGHTS = [2 ** (EXPONENT_SPAN - abs(x)) for x in range(-EXPONENT_SPAN, EXPONENT_SPAN + 1)]
LARGEST_RESULT = 14


def _sample_exponentiation(draws: Draws, sampling: Sampling) -> Problem | None:
    """Integer powers and integer roots ξ, in equal shares, with exponents of either sign.

    The base's magnitude x has weight 2^−|x|; ξ ~ U{2 … ⌊14 / (|x|+1)⌋}. Bases above 1 turn
    negative half the time where the exponent is an integer.
    """
    x = draws.weighted(EXPONENT_WEIGHTS) - EXPONENT_SPAN
    digits = draws.between(1, sampling.max_digits)
    base = numbers.scaled(numbers.significand(draws, digits), x)
    xi = draws.between(2, LARGEST_RESULT // (abs(x) + 1))
    root, inverse, negative = (draws.below(2) for _ in range(3))
    if plain(base) == "1":
        return None
    if negative and not root and x >= 0:
        base = Number(-base.significand, base.exponent)
    exponent = reciprocal(xi, sampling.max_digits) if root else str(xi)
    params = {"digits": digits, "exponent": x, "power": xi, "root": root}
    return Problem("^", (plain(base), "-" * inverse + exponent), params)


def reciprocal(xi: int, max_digits: int) -> str:
    """1/ξ as it is printed, in at most 15 significant digits."""
    context = Context(prec=min(truth.DIGITS, max_digits), rounding=ROUND_HALF_EVEN)
    return plain(number_of(context.divide(Decimal(1), Decimal(xi))))


def _sample_list(draws: Draws, sampling: Sampling) -> Problem | None:
    """One set of lists serves mean and std: neither is 0 and both are in range."""
    numbers_ = lists.sample_list(draws, sampling.max_digits, REACH)
    if numbers_ is None:
        return None
    operands = numbers_.texts()
    if not (truth.in_range(truth.mean(operands)) and truth.in_range(truth.std(operands))):
        return None
    return Problem("", operands, numbers_.params)


def _sample_mean(draws: Draws, sampling: Sampling) -> Problem | None:
    problem = _sample_list(draws, sampling)
    return problem and problem._replace(operator="mean")


def _sample_std(draws: Draws, sampling: Sampling) -> Problem | None:
    problem = _sample_list(draws, sampling)
    return problem and problem._replace(operator="std")


EXPONENTIATION = Task(
    name="exponentiation",
    display="Exp",
    answer_kind="number",
    metric="log_smape",
    system_prompt="arithmetic",
    operators=("^",),
    words=7,
    sample=_sample_exponentiation,
    truth=lambda _operator, operands: truth.power(*operands),
    difficulty=difficulty.of_power,
)

MEAN = Task(
    name="mean",
    display="Mean",
    answer_kind="number",
    metric="log_smape",
    system_prompt="arithmetic",
    operators=("mean",),
    words=lists.WORDS,
    sample=_sample_mean,
    truth=lambda _operator, operands: truth.mean(operands),
    difficulty=difficulty.of_moments,
    stream="lists",
)

STD = Task(
    name="std",
    display="Std",
    answer_kind="number",
    metric="log_smape",
    system_prompt="arithmetic",
    operators=("std",),
    words=lists.WORDS,
    sample=_sample_std,
    truth=lambda _operator, operands: truth.std(operands),
    difficulty=difficulty.of_moments,
    stream="lists",
)
