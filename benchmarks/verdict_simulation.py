"""Simulated power and error rates of verdicts, on the data of `coverage_simulation`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from benchmarks.coverage_simulation import (
    ITEMS,
    MODELS,
    PROFILES,
    SAMPLES,
    SEED,
    Array,
    constant,
    design,
    draw_difficulties,
    draw_pair,
    draw_tasks,
)
from numbench.stats.design import Stratum
from numbench.stats.intervals import (
    difference_intervals,
    difference_variances,
    variance_of_mean,
)
from numbench.stats.multiple_testing import holm
from numbench.stats.paired import Difference, compare_means, one_sided_bounds, sign_flip_test
from numbench.stats.power import Z_ONE_SIDED, detectable_difference


class Power(NamedTuple):
    """A difference or margin in points, and the share of samples in which it is found."""

    name: str
    points: float
    share: float


def _detectable(values: Array) -> float:
    """Return the detectable difference of the observed differences of items, in 0 … 1."""
    column = Stratum("", values[:, None])
    items = np.array([len(values)])
    return float(detectable_difference(*difference_variances([column], 1.0), items, 1.0)[0])


SIZES_OF_DIFFERENCES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "100 points (exact match)": lambda rng, count: np.ones(count),
    "unequal": lambda rng, count: rng.beta(1, 2, count),
    "7 points": lambda rng, count: np.full(count, 0.07),
    "one in ten of 100, others up to 3": lambda rng, count: np.where(
        np.arange(count) % 10 == 1, 1.0, 0.03 * rng.random(count)
    ),
}
"""Absolute differences of items, of scores in 0 … 1."""


def simulated_power(samples: int = 1000) -> Iterator[Power]:
    """Yield the simulated power of verdicts on log-sMAPE at the minimum detectable difference.

    Items differ by amounts of one set of sizes, in either direction, and some answers are lost.
    """
    rng = np.random.default_rng(SEED)
    for name, draw_sizes in SIZES_OF_DIFFERENCES.items():
        for differing in (2, 8, 15, 30, 60, 200, 500):
            sizes = draw_sizes(rng, differing)
            observed = np.zeros(ITEMS)
            observed[:differing] = sizes * rng.choice([-1, 1], differing)
            true = _detectable(observed)
            drawn = _draw_differences(rng, sizes, differing / ITEMS, true, samples)
            power = _share_of_verdicts([Stratum("", drawn, design())])
            yield Power(f"{differing} of 500 differ, {name}", 100 * true, power)


def _draw_differences(
    rng: np.random.Generator, sizes: Array, probability: float, true: float, samples: int
) -> Array:
    """Return differences of shape (items, samples): a share `true` of 1, the others of `sizes`."""
    drawn = rng.choice(sizes, (ITEMS, samples))
    drawn *= rng.choice([-1, 1], drawn.shape) * (rng.random(drawn.shape) < probability)
    return np.where(rng.random(drawn.shape) < true, 1.0, drawn)


def _share_of_verdicts(strata: Sequence[Stratum]) -> float:
    p = sign_flip_test(strata)
    return float(np.mean((p <= 0.05) & (difference_intervals(strata, 1.0).low > 0)))


def verdicts_on_equal_models(samples: int = 1000) -> Iterator[Power]:
    """Yield how often any of nine tasks, or their mean, has a verdict for two equal models.

    With Holm's correction, as in `numbench compare`; and how often a single test has one.
    """
    rng = np.random.default_rng(SEED)
    for name, model in MODELS.items():
        first, second = draw_tasks(rng, model, samples, models=2)
        differences = [
            one._replace(values=one.values - other.values)
            for one, other in zip(first, second, strict=True)
        ]
        tests = [compare_means([one], 1.0) for one in differences]
        tests.append(compare_means(differences, 1.0))
        of_samples = [_known(of_sample) for of_sample in zip(*tests, strict=True)]
        single = [d.is_significant(d.p) for of_sample in of_samples for d in of_sample]
        yield Power(f"{name}, single tests", 0.0, float(np.mean(single)))
        families = [
            any(
                d.is_significant(p)
                for d, p in zip(of_sample, holm([d.p for d in of_sample]), strict=True)
            )
            for of_sample in of_samples
        ]
        yield Power(f"{name}, any task or the mean", 0.0, float(np.mean(families)))


def _known(differences: Sequence[Difference | None]) -> list[Difference]:
    return [difference for difference in differences if difference is not None]


def false_non_inferiority(samples: int = SAMPLES // 2, margin: float = 1.0) -> Iterator[Power]:
    """Yield how often a regression of exactly `margin` points is wrongly excluded: 5% at most."""
    rng = np.random.default_rng(SEED)
    for loss, errors in ((0.999, 5), (0.5, 10), (0.5, 30), (0.2, 25), (0.2, 100)):
        more = margin * ITEMS / 100 / loss
        pair = (constant(errors + more, loss, 3), constant(errors, loss, 3))
        first, second = draw_pair(rng, pair, draw_difficulties(rng, samples))
        rate = _wrongly_excluded([first.scores - second.scores], margin)
        yield Power(f"log-sMAPE, {errors} and {errors + more:.0f} errors", margin, rate)
    for name, worse, better in (
        ("Mult, weak and strong", PROFILES["Mult, weak"], PROFILES["Mult, strong"]),
        ("Mean and Add, weak", PROFILES["Mean, weak"], PROFILES["Add, weak"]),
    ):
        gap = 100 * (better.expected_score - worse.expected_score)
        first, second = draw_pair(rng, (worse, better), draw_difficulties(rng, samples))
        rate = _wrongly_excluded([first.scores - second.scores], gap)
        yield Power(f"log-sMAPE, {name}", gap, rate)
    # Rare losses among many small differences, of independent items.
    for loss, share, size, of_margin in (
        (1.0, 0.0, 0.0, 0.5), (1.0, 0.0, 0.0, 0.55), (1.0, 0.0, 0.0, 0.9), (1.0, 0.2, 0.07, 0.5),
        (1.0, 0.2, 0.07, 2.0), (0.6, 0.2, 0.07, 1.0), (1.0, 0.04, 0.05, 0.3),
    ):  # fmt: skip
        drawn = np.where(rng.random((ITEMS, samples)) < of_margin / 100 / loss, -loss, 0.0)
        noise = rng.choice([-size, size], drawn.shape) * (rng.random(drawn.shape) < share)
        rate = _wrongly_excluded([np.where(drawn < 0, drawn, noise)], of_margin)
        name = f"losses of {100 * loss:.0f}, {share:.0%} of the items ± {100 * size:.0f}"
        yield Power(name, of_margin, rate)
    for errors, of_margin in ((0, 0.55), (0, 1.0), (5, 1.0), (50, 1.0)):
        pair = (constant(errors + 5 * of_margin, 0.5), constant(errors, 0.5))
        first, second = draw_pair(rng, pair, draw_difficulties(rng, samples))
        rate = _wrongly_excluded([first.matches - second.matches], of_margin)
        name = f"exact match, {errors} and {errors + 5 * of_margin:g} errors"
        yield Power(name, of_margin, rate)
    nine = [np.where(rng.random((ITEMS, samples)) < 0.0007, -1.0, 0.0) for _ in range(9)]
    yield Power("mean of nine tasks, losses of 100", 0.07, _wrongly_excluded(nine, 0.07))


def _wrongly_excluded(differences: Sequence[Array], margin: float) -> float:
    strata = [Stratum(str(number), each, design()) for number, each in enumerate(differences)]
    return float(np.mean(one_sided_bounds(strata, 1.0).at_least > -margin / 100))


def excluded_margins(samples: int = SAMPLES // 10) -> Iterator[Power]:
    """Yield how often two equal models pass a margin in nine tasks and their mean.

    Planned: what `numbench compare OLD --margin` says of it, from one of the two runs.
    """
    rng = np.random.default_rng(SEED)
    for name, model in MODELS.items():
        first, second = draw_tasks(rng, model, samples, models=2)
        differences = [
            one._replace(values=one.values - other.values)
            for one, other in zip(first, second, strict=True)
        ]
        bounds = [one_sided_bounds([one], 1.0).at_least for one in differences]
        bounds.append(one_sided_bounds(differences, 1.0).at_least)
        variances = [2 * variance_of_mean([one], 1.0) for one in first]
        for margin in (1, 2, 3, 5):
            passed = np.all([bound > -margin / 100 for bound in bounds], axis=0)
            yield Power(name, margin, float(np.mean(passed)))
            chances = [
                math.prod(
                    non_inferiority_power(margin / 100, variance, ITEMS, 1.0)
                    for variance in of_sample
                )
                for of_sample in np.array(variances).T.tolist()
            ]
            yield Power(f"{name}, planned", margin, float(np.mean(chances)))


def non_inferiority_power(margin: float, variance: float, items: int, maximum: float) -> float:
    """Return the chance that a regression of `margin` is excluded for two equal models.

    variance: of the mean difference of `items` items. The one-sided bound allows for one further
    item with the largest loss, in the mean and in the standard error.
    """
    error = math.sqrt(variance)
    room = margin - maximum / items - Z_ONE_SIDED * math.sqrt(variance + (maximum / items) ** 2)
    return NormalDist().cdf(room / error) if error > 0 else float(room > 0)


def wrong_verdicts(samples: int = 1000) -> Iterator[tuple[str, float, float]]:
    """Yield how often equal models give the verdict better, and a one-sided bound excludes 0.

    Small gains on many items are balanced by losses of 100 that most samples do not contain.
    """
    rng = np.random.default_rng(SEED)
    for items, share, gain in (
        (ITEMS, 0.03, 0.07), (ITEMS, 0.06, 0.07), (ITEMS, 0.24, 0.07), (ITEMS, 0.2, 0.2),
        (ITEMS, 0.5, 0.01), (ITEMS // 5, 0.5, 0.01), (ITEMS, 0.05, 1.0),
    ):  # fmt: skip
        u = rng.random((items, samples))
        loss = share * gain
        drawn = np.where(u < loss, -1.0, np.where(u < loss + share, gain, 0.0))
        strata = [Stratum("", drawn)]
        name = f"{share:.0%} of the {items} items + {100 * gain:.0f}, {loss:.1%} - 100"
        excluded = float(np.mean(one_sided_bounds(strata, 1.0).at_least > 0))
        yield name, _share_of_verdicts(strata), excluded


def wrong_rank_sets(samples: int = 400, runs: int = 6, tasks: int = 4) -> float:
    """Return how often any rank set misses the true rank, if all runs are equally good.

    Every run then has all ranks, so any significant pair is wrong.
    """
    rng = np.random.default_rng(SEED)
    pairs = [(a, b) for a in range(runs) for b in range(a)]
    wrong = 0
    for _ in range(samples):
        p: list[float] = []
        for task in range(tasks):
            scores = rng.random((60, 1)) + 0.3 * rng.standard_normal((60, runs))
            differences = np.column_stack([scores[:, a] - scores[:, b] for a, b in pairs])
            p += sign_flip_test([Stratum(str(task), differences)]).tolist()
        wrong += min(holm(p)) <= 0.05
    return wrong / samples
