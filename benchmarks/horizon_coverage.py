"""Simulate how often intervals of a horizon are right, and what they cost. Prints Markdown.

    python benchmarks/horizon_coverage.py [--samples 1000] [--workers 1]

Models with known probabilities are measured by the adaptive design. The heavy tests check the same
simulations.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.horizon_simulation import Array, Simulated, Tokens, simulate
from numbench.horizon import Limits
from numbench.horizon.adaptive import round_size
from numbench.horizon.goodness_of_fit import (
    DOUBTFUL,
    MISFIT,
    SizeCount,
    fit_p_value,
    isotonic_crossing,
    largest_rate,
)
from numbench.horizon.psychometric import DESIGN, RESULT, Grid, Posterior, probabilities
from numbench.horizon.sizes import task_sizes
from numbench.tasks import SCALED_TASKS

SAMPLES = 1000
SEED = 730_125
"""Not one of the seeds that the design was chosen with."""

SIZES = task_sizes(SCALED_TASKS["long_addition"])

LEVELS = DOUBTFUL, MISFIT
"""p-values of the fit check below which models are counted."""

Shape = Callable[[Array, Array], Array]
"""Returns p without guessing, from the horizon and the size."""


class Condition(NamedTuple):
    """Models whose h50 is log-uniform within a factor of √2 around `horizon`.

    So no result depends on how h50 lies between two sizes. guess: the probability of a right guess.
    """

    name: str
    shape: Shape
    horizon: float = 20.0
    guess: float = 0.0


class Coverage(NamedTuple):
    """What measurements of a condition say.

    bias, rmse: of log₂ h50. isotonic: root mean square error of the isotonic crossing, where there
    is one. reported: that of the value that is reported, which is the isotonic crossing if the
    curve is doubtful. h90: how often it is reported, and how often its interval then includes the
    true one; None if that is never reached. misfits: the shares of p-values below each of `LEVELS`.
    """

    name: str
    measurements: int
    h50: float
    bias: float
    rmse: float
    isotonic: float
    reported: float
    has_h90: float
    h90: float | None
    items: float
    most_items: float
    misfits: tuple[float, ...]


def logistic(slope: float, lapse: float = 0.0) -> Shape:
    """Return the curve that the estimate assumes."""
    b, rate = np.array(slope), np.array(lapse)
    return lambda h, s: probabilities(np.log(h), b, rate, np.log(s))


def _crossing_at_horizon(curve: Callable[[Array], Array]) -> Shape:
    """Return a shape from a falling function of size over h50, which is stretched to cross 50 %."""
    grid = np.geomspace(1e-3, 1e3, 200_001)
    scale = grid[int(np.argmax(curve(grid) <= 0.5))]
    return lambda h, s: curve(s / h * scale)


def _steps(h: Array, s: Array) -> Array:
    return np.where(s <= h / 12, 1.0, np.where(s <= h, 0.7, 0.0))


def _collapse(at: float, slope: float, x: Array) -> Array:
    return np.asarray(1 / (1 + (x / at) ** slope))


WELL_SPECIFIED = (
    *(Condition(f"slope {slope:g}", logistic(slope)) for slope in (1, 1.4, 2, 3, 6, 12)),
    Condition("slope 1.4, lapses 5%", logistic(1.4, 0.05)),
    *(Condition(f"slope 3, lapses {r:.0%}", logistic(3, r)) for r in (0.02, 0.05, 0.1, 0.3)),
    Condition("slope 200", logistic(200)),
    Condition("slope 12, lapses 10%", logistic(12, 0.1)),
    Condition("slope 3, h50 ≈ 3", logistic(3, 0.02), 3),
    Condition("slope 12, h50 ≈ 2", logistic(12), 2),
    Condition("slope 3, h50 ≈ 300", logistic(3, 0.02), 300),
    Condition("slope 3, guesses 50%", logistic(3), 20, 0.5),
    Condition("slope 6, guesses 50%", logistic(6, 0.02), 20, 0.5),
)

MISSPECIFIED = (
    Condition("digits fail independently: q^s", lambda h, s: 0.5 ** (s / h)),
    Condition("pairs of digits fail: q^(s²)", lambda h, s: 0.5 ** ((s / h) ** 2)),
    Condition("70%, with a collapse", _crossing_at_horizon(lambda x: 0.7 * _collapse(1, 8, x))),
    Condition(
        "collapse in two stages, at 65%",
        _crossing_at_horizon(lambda x: 0.35 * _collapse(0.1, 8, x) + 0.65 * _collapse(1, 8, x)),
    ),
    Condition(
        "collapse in two stages, at 35%",
        _crossing_at_horizon(lambda x: 0.65 * _collapse(0.1, 8, x) + 0.35 * _collapse(1, 8, x)),
    ),
    Condition("100% to h50 / 12, 70% to h50, then 0", _steps, 60),
    Condition("plateau at 30%", _crossing_at_horizon(lambda x: 0.3 + 0.7 * _collapse(1, 6, x))),
)


def direct_tokens() -> Tokens:
    """Return the tokens of a model that answers at once."""
    sizes = np.array(SIZES, np.float64)
    return Tokens(40 + 0.4 * sizes, 10 + 0.35 * sizes, 10 + 0.4 * sizes, 0.0)


def reasoning_tokens() -> Tokens:
    """Return the tokens of a model whose reasoning grows with the size."""
    sizes = np.array(SIZES, np.float64)
    return direct_tokens()._replace(answer=60 * sizes**0.8, spread=0.5)


def horizons(condition: Condition, samples: int, seed: int) -> Array:
    """Draw the h50 of models of a condition."""
    rng = np.random.default_rng(seed)
    return np.asarray(condition.horizon * 2 ** rng.uniform(-0.5, 0.5, samples))


def measure(
    condition: Condition,
    samples: int,
    tokens: Tokens,
    limits: Limits,
    seed: int,
    is_uniform: bool = False,
) -> Simulated:
    """Simulate measurements of a condition."""
    h = horizons(condition, samples, seed)
    p = condition.shape(h[:, None], np.array(SIZES, np.float64)[None, :])
    p = condition.guess + (1 - condition.guess) * p
    guess = (condition.guess,) * len(SIZES)
    return simulate(p, SIZES, guess, tokens, limits, seed, None if is_uniform else round_size)


def posterior_of(
    condition: Condition, right: Sequence[int], total: Sequence[int], grid: Grid = RESULT
) -> Posterior:
    """Return the posterior of the shipped code."""
    posterior = Posterior(SIZES, (condition.guess,) * len(SIZES), grid)
    for size, k, n in zip(SIZES, right, total, strict=True):
        if n:
            posterior.update(size, k, n - k)
    return posterior


def coverage(condition: Condition, samples: int = SAMPLES, seed: int = SEED) -> Coverage:
    """Measure a condition, and compare the intervals with the truth."""
    result = measure(condition, samples, direct_tokens(), Limits(), seed)
    h = horizons(condition, samples, seed)[result.model]
    truth = {level: _size_at(condition, level, h) for level in (0.5, 0.9)}
    rows = []
    for row, (right, total) in enumerate(
        zip(result.right.tolist(), result.total.tolist(), strict=True)
    ):
        posterior = posterior_of(condition, right, total)
        counts = tuple(
            SizeCount(size, k, n, guess=condition.guess)
            for size, k, n in zip(SIZES, right, total, strict=True)
            if n
        )
        h50, h90 = posterior.horizon(), posterior.horizon(0.9)
        rows.append(
            (
                h50.low <= truth[0.5][row] <= h50.high,
                np.log2(h50.value / truth[0.5][row]),
                h90.value >= SIZES[0] and largest_rate(counts) >= 0.9,
                h90.low <= truth[0.9][row] <= h90.high,
                np.log2((isotonic_crossing(counts) or np.nan) / truth[0.5][row]),
                fit_p_value(posterior, counts),
            )
        )
    inside, error, has_90, inside_90, isotonic, p = np.array(rows, np.float64).T
    reported = np.where((p < DOUBTFUL) & ~np.isnan(isotonic), isotonic, error)
    items = result.total.sum(axis=1)
    is_unreached = np.isnan(truth[0.9]).any() or not has_90.any()
    return Coverage(
        condition.name,
        samples,
        float(inside.mean()),
        float(error.mean()),
        float(np.sqrt(np.mean(error**2))),
        float(np.sqrt(np.nanmean(isotonic**2))),
        float(np.sqrt(np.mean(reported**2))),
        float(has_90.mean()),
        None if is_unreached else float(inside_90[has_90 > 0].mean()),
        float(items.mean()),
        float(np.quantile(items, 0.95)),
        tuple(float(np.mean(p < level)) for level in LEVELS),
    )


class Cost(NamedTuple):
    """Items and tokens of the adaptive design and of a uniform grid with the same stopping rule.

    The grid has the same sizes, and asks each equally often. errors: root mean squares of log₂ h50.
    """

    name: str
    items: tuple[float, float]
    tokens: tuple[float, float]
    errors: tuple[float, float]

    def ratio(self, used: tuple[float, float]) -> float:
        """Return how much more the grid uses for an error as small as that of the design.

        The square of the error is inversely proportional to the number of items.
        """
        return used[1] / used[0] * (self.errors[1] / self.errors[0]) ** 2


EFFICIENCY = tuple(
    (Condition(f"slope {slope:g}, h50 ≈ {h:g}", logistic(slope), h), style)
    for slope, h, style in (
        (1.4, 20.0, "direct"),
        (3.0, 20.0, "direct"),
        (8.0, 20.0, "direct"),
        (3.0, 20.0, "reasoning"),
        (8.0, 20.0, "reasoning"),
        (3.0, 300.0, "reasoning"),
    )
)


def cost(condition: Condition, style: str, samples: int, seed: int = SEED) -> Cost:
    """Measure a condition by the adaptive design and by a uniform grid."""
    tokens = direct_tokens() if style == "direct" else reasoning_tokens()
    designs = [
        measure(condition, samples, tokens, Limits(max_items=100_000), seed, is_uniform)
        for is_uniform in (False, True)
    ]
    h = horizons(condition, samples, seed)
    errors = []
    for result in designs:
        values = [
            posterior_of(condition, *counts, grid=DESIGN).horizon().value
            for counts in zip(result.right.tolist(), result.total.tolist(), strict=True)
        ]
        errors.append(float(np.sqrt(np.mean(np.log2(values / h[result.model]) ** 2))))
    items = [float(result.total.sum(axis=1).mean()) for result in designs]
    used = [float(result.tokens.mean()) for result in designs]
    return Cost(
        f"{condition.name}, {style}",
        (items[0], items[1]),
        (used[0], used[1]),
        (errors[0], errors[1]),
    )


def _size_at(condition: Condition, level: float, h: Array) -> Array:
    """Return where p without guessing falls through a level; NaN: nowhere within three decades."""
    log_ratios = np.linspace(-3, 3, 6001) * np.log(10)
    sizes = []
    for horizon in h.tolist():
        p = condition.shape(np.array([horizon]), horizon * np.exp(log_ratios))
        if p[0] <= level:
            sizes.append(np.nan)
        else:
            sizes.append(horizon * np.exp(np.interp(-level, -p, log_ratios)))
    return np.array(sizes)


def print_coverage(title: str, rows: Sequence[Coverage]) -> None:
    """Print the table of conditions."""
    print(f"\n## {title}\n")
    levels = " | ".join(f"p < {level}" for level in LEVELS)
    names = "h50 | bias | error | isotonic | reported | has h90 | h90 | items | 95% have at most"
    print(f"| | {names} | {levels} |")
    print(f"|---{'|---:' * (9 + len(LEVELS))}|")
    for row in rows:
        h90 = "–" if row.h90 is None else f"{row.h90:.1%}"
        print(
            f"| {row.name} | {row.h50:.1%} | {row.bias:+.3f} | {row.rmse:.3f} "
            f"| {row.isotonic:.3f} | {row.reported:.3f} | {row.has_h90:.0%} | {h90} "
            f"| {row.items:.0f} | {row.most_items:.0f} "
            f"| {' | '.join(f'{share:.1%}' for share in row.misfits)} |"
        )


def print_costs(rows: Sequence[Cost], measurements: int) -> None:
    """Print the table of the designs."""
    print("\n## Adaptive design and uniform grid\n")
    print(
        "Both have the same sizes, stop at the same precision, and have no limit of items. The "
        "grid asks all\nsizes equally often; it cannot know which of them matter. The factors "
        "compare what both need for\nthe same error: the squared error is inversely proportional "
        f"to the number of items.\n{measurements:,} measurements per row; the factors have a "
        f"standard error of {2 / np.sqrt(measurements):.0%}.\n"
    )
    print("| | items | grid | factor | tokens | grid | factor | error | grid |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row.name} | {row.items[0]:.0f} | {row.items[1]:,.0f} | {row.ratio(row.items):.1f} "
            f"| {row.tokens[0]:,.0f} | {row.tokens[1]:,.0f} | {row.ratio(row.tokens):.0f} "
            f"| {row.errors[0]:.3f} | {row.errors[1]:.3f} |"
        )


def main() -> None:
    """Simulate and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    samples = arguments.samples
    # With several threads in each worker, small matrix products take several times as long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
        conditions = (*WELL_SPECIFIED, *MISSPECIFIED)
        numbers = range(len(conditions))
        rows = list(pool.map(_coverage_of, numbers, repeat(samples)))
        costs = list(pool.map(_cost_of, range(len(EFFICIENCY)), repeat(samples)))
    print_page(rows, costs)


def print_page(rows: Sequence[Coverage], costs: Sequence[Cost]) -> None:
    """Print the page of all conditions, in their order."""
    well, other = rows[: len(WELL_SPECIFIED)], rows[len(WELL_SPECIFIED) :]
    print("# Horizons of simulated models")
    print(
        f"\n`python benchmarks/horizon_coverage.py --samples {rows[0].measurements}`: "
        f"{rows[0].measurements:,} measurements of each kind of model\nwith the default limits "
        f"(precision {Limits().precision}, {Limits().max_items} items). h50: how often the 95% "
        "interval includes the true one, which is\ndrawn anew for every measurement. Bias and "
        "errors (root mean squares) are of log₂ h50: of the curve, of the isotonic\ncrossing "
        "where there is one, and of the value that is reported, which is the crossing if p is "
        f"below {DOUBTFUL}. has h90:\nhow often an h90 is reported; h90: how often its interval "
        "then includes the true one. If nothing else is said, h50 ≈ 20,\nand there are no lapses "
        "and no guesses. p: the fit check."
    )
    print_coverage("Models whose probabilities follow the curve", well)
    print_coverage("Models whose probabilities follow another curve", other)
    print_costs(costs, rows[0].measurements)


def _coverage_of(number: int, samples: int) -> Coverage:
    result = coverage((*WELL_SPECIFIED, *MISSPECIFIED)[number], samples)
    print(result, file=sys.stderr, flush=True)
    return result


def _cost_of(number: int, samples: int) -> Cost:
    result = cost(*EFFICIENCY[number], samples)
    print(result, file=sys.stderr, flush=True)
    return result


if __name__ == "__main__":
    main()
