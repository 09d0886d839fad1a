"""Simulate how often intervals and tests are right, on data like the real ones. Prints Markdown.

    python benchmarks/intervals.py [--samples 4000] [--figure docs/assets/coverage.svg]

Items are drawn like those of `v1`: a pool of 10,000 is ranked by difficulty, and one item is drawn
from each of 500 strata. Score functions of difficulty resemble those of the paper's models. The
heavy tests check the same simulations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.dataset.settings import POOL_SIZE
from numbench.stats.bootstrap import percentile_bounds
from numbench.stats.design import Design, Stratum, residual_squares
from numbench.stats.intervals import bootstrap_means, difference_intervals, mean_intervals
from numbench.stats.mcnemar import DiscordantCounts, mcnemar, tango_interval
from numbench.stats.multiple_testing import holm
from numbench.stats.one_sided_bounds import one_sided_bounds
from numbench.stats.paired import compare, compare_matches
from numbench.stats.permutation import permutation_test
from numbench.stats.power import minimum_detectable_difference
from numbench.stats.power_of_means import minimum_detectable_mean_difference
from numbench.stats.resampling import bootstrap_weights
from numbench.stats.sample_size import item_variance, items_for_precision

ITEMS = 500
SAMPLES = 4000
SEED = 20_251_122
_CHUNK = 250
_BOOTSTRAP_SAMPLES = 1000

Array = npt.NDArray[np.float64]
Curve = Callable[[Array], Array]


class Profile(NamedTuple):
    """A model on a task, as functions of the quantile of difficulty, 0 … 1.

    correct: probability of a correct answer. wrong: mean score of a wrong one, between 0 and 1.
    spread: how alike wrong answers are; the scores are beta-distributed with this concentration.
    """

    correct: Curve
    wrong: Curve
    spread: float

    @property
    def expected_score(self) -> float:
        u = (np.arange(200_000) + 0.5) / 200_000
        correct = self.correct(u)
        return float(np.mean(correct + (1 - correct) * self.wrong(u)))

    @property
    def expected_matches(self) -> float:
        return float(np.mean(self.correct((np.arange(200_000) + 0.5) / 200_000)))


def _falling(u: Array, at: float, width: float) -> Array:
    return np.asarray(1 / (1 + np.exp((u - at) / width)))


def constant(errors: float, loss: float, spread: float = 1.5) -> Profile:
    """Return a model with an expected number of errors in 500 items, whatever their difficulty."""
    return Profile(lambda u: 1 - errors / ITEMS + 0 * u, lambda u: 1 - loss + 0 * u, spread)


PROFILES = {
    "Mult, weak": Profile(lambda u: _falling(u, 0.14, 0.03), lambda u: 0.35 - 0.32 * u, 8),
    "Div, weak": Profile(lambda u: _falling(u, 0.2, 0.1), lambda u: 0.5 - 0.3 * u, 8),
    "Exp, weak": Profile(
        lambda u: 0.5 * _falling(u, 0.06, 0.04), lambda u: 0.45 - 0.5 * u + 0.15 * u * u, 5
    ),
    "Mean, weak": Profile(lambda u: 0.9 * _falling(u, 0.5, 0.1) + 0.02, lambda u: 0.7 - 0.6 * u, 1),
    "Add, weak": Profile(lambda u: 0.95 - 0.15 * u, lambda u: 0.5 + 0 * u, 1.5),
    "Mult, strong": Profile(lambda u: 1 - 0.35 * u * u, lambda u: 0.8 - 0.2 * u, 3),
}
"""Like those of the study: δ explains up to two thirds of the variance of scores, or nothing."""

EXPECTED_ERRORS = (0.25, 0.5, 1, 2, 3, 5, 10, 25)


class Coverage(NamedTuple):
    """Shares of intervals that include the true value, with their mean width in points."""

    name: str
    before: float
    before_width: float
    now: float
    now_width: float


class Draw(NamedTuple):
    """Scores and correct answers of one model, shape (items, samples); one sample per column."""

    scores: Array
    matches: Array


def draw_difficulties(
    rng: np.random.Generator, samples: int, items: int = ITEMS, stratified: bool = True
) -> Array:
    """Return the quantiles of difficulty of sampled items, ascending, shape (items, samples)."""
    if not stratified:
        return np.sort(rng.random((items, samples)), axis=0)
    size = POOL_SIZE // items
    chunks = []
    for start in range(0, samples, _CHUNK):
        count = min(_CHUNK, samples - start)
        pools = np.sort(rng.random((count, POOL_SIZE)), axis=1)
        chosen = rng.integers(0, size, (count, items)) + np.arange(items) * size
        chunks.append(np.take_along_axis(pools, chosen, axis=1).T)
    return np.hstack(chunks)


def answer(rng: np.random.Generator, profile: Profile, u: Array, luck: Array) -> Draw:
    """Draw the scores of a model. luck: uniform numbers that decide which answers are correct."""
    mean = np.clip(profile.wrong(u), 1e-3, 1 - 1e-3)
    wrong = rng.beta(mean * profile.spread, (1 - mean) * profile.spread)
    correct = luck < profile.correct(u)
    return Draw(np.where(correct, 1.0, wrong), correct.astype(np.float64))


def design(items: int = ITEMS) -> Design:
    """Return the design of a generated dataset for items in ascending order of difficulty."""
    return Design(np.arange(items), 1 / items - 1 / POOL_SIZE)


def covered(low: Array, high: Array, truth: float) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


def bootstrap_bounds(values: Array) -> tuple[Array, Array]:
    """Return percentile bootstrap bounds of each column, of independent items."""
    values = values[:, :_BOOTSTRAP_SAMPLES]
    weights = np.concatenate(list(bootstrap_weights(len(values), 1000)))
    return percentile_bounds(weights @ values / len(values))


def compare_coverage(name: str, values: Array, truth: float, stratified: bool = True) -> Coverage:
    """Return the coverage of the percentile bootstrap and of the present interval of scores."""
    low, high = bootstrap_bounds(values)
    stratum = Stratum("", values, design() if stratified else None)
    _, now_low, now_high = mean_intervals([stratum], 1.0)
    return Coverage(
        name,
        covered(low, high, truth),
        100 * float(np.mean(high - low)),
        covered(now_low, now_high, truth),
        100 * float(np.mean(now_high - now_low)),
    )


def compare_match_coverage(name: str, matches: Array, truth: float) -> Coverage:
    """Return the coverage of Wilson's interval of independent items and of the present one."""
    plain = mean_intervals([Stratum("", matches)], 1.0)
    now = mean_intervals([Stratum("", matches, design())], 1.0)
    return Coverage(
        name,
        covered(plain.low, plain.high, truth),
        100 * float(np.mean(plain.high - plain.low)),
        covered(now.low, now.high, truth),
        100 * float(np.mean(now.high - now.low)),
    )


def coverage_of_stratified_scores(samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage for each profile, of log-sMAPE and of exact match."""
    rng = np.random.default_rng(SEED)
    for name, profile in PROFILES.items():
        u = draw_difficulties(rng, samples)
        drawn = answer(rng, profile, u, rng.random(u.shape))
        yield compare_coverage(f"{name}: log-sMAPE", drawn.scores, profile.expected_score)
        yield compare_match_coverage(f"{name}: exact", drawn.matches, profile.expected_matches)


def coverage_near_the_ceiling(samples: int = SAMPLES, loss: float = 0.5) -> Iterator[Coverage]:
    """Yield the coverage for each of `EXPECTED_ERRORS`; wrong answers lose `loss` on average."""
    rng = np.random.default_rng(SEED)
    for errors in EXPECTED_ERRORS:
        u = rng.random((ITEMS, samples))
        profile = constant(errors, loss)
        drawn = answer(rng, profile, u, rng.random(u.shape))
        yield compare_coverage(f"{errors:g}", drawn.scores, profile.expected_score, False)


def coverage_of_part_of_the_items(samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage if a random part of the items of `v1` counts, as with --limit."""
    rng = np.random.default_rng(SEED)
    profile = PROFILES["Mult, weak"]
    for items in (25, 100, 250, 400):
        u = draw_difficulties(rng, samples)
        scores = answer(rng, profile, u, rng.random(u.shape)).scores
        ranks = np.argsort(rng.random(scores.shape), axis=0)
        scores[np.argsort(ranks, axis=0) >= items] = np.nan
        now = mean_intervals([Stratum("", scores, design())], 1.0)
        kept = np.take_along_axis(scores, np.argsort(np.isnan(scores), axis=0)[:items], axis=0)
        low, high = bootstrap_bounds(kept)
        truth = profile.expected_score
        yield Coverage(
            f"{items} of 500 items",
            covered(low, high, truth),
            100 * float(np.mean(high - low)),
            covered(now.low, now.high, truth),
            100 * float(np.mean(now.high - now.low)),
        )


PAIRS = {
    "Mult, weak and strong": (PROFILES["Mult, weak"], PROFILES["Mult, strong"]),
    "Mean and Add, weak": (PROFILES["Mean, weak"], PROFILES["Add, weak"]),
    "Div and Mult, weak": (PROFILES["Div, weak"], PROFILES["Mult, weak"]),
    "0 and 5 errors": (constant(0, 0.5), constant(5, 0.5)),
    "1 and 3 errors": (constant(1, 0.5), constant(3, 0.5)),
    "5 and 5 errors": (constant(5, 0.5), constant(5, 0.5)),
    "10 and 20 errors": (constant(10, 0.5), constant(20, 0.5)),
    "100 and 120 small errors": (constant(100, 0.2, 3), constant(120, 0.2, 3)),
}


def draw_pair(
    rng: np.random.Generator, pair: tuple[Profile, Profile], u: Array
) -> tuple[Draw, Draw]:
    """Draw two models that share half of their luck, item by item."""
    luck = rng.random(u.shape)
    other = np.where(rng.random(u.shape) < 0.5, luck, rng.random(u.shape))
    return answer(rng, pair[0], u, luck), answer(rng, pair[1], u, other)


def coverage_of_differences(samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage of differences between two models, of log-sMAPE and of exact match."""
    rng = np.random.default_rng(SEED)
    for name, pair in PAIRS.items():
        u = draw_difficulties(rng, samples)
        first, second = draw_pair(rng, pair, u)
        difference = first.scores - second.scores
        truth = pair[0].expected_score - pair[1].expected_score
        low, high = bootstrap_bounds(difference)
        _, now_low, now_high = difference_intervals([Stratum("", difference, design())], 1.0)
        yield Coverage(
            f"{name}: log-sMAPE",
            covered(low, high, truth),
            100 * float(np.mean(high - low)),
            covered(now_low, now_high, truth),
            100 * float(np.mean(now_high - now_low)),
        )
        yield _match_differences(name, pair, first.matches[:, :1000], second.matches[:, :1000])


def _match_differences(
    name: str, pair: tuple[Profile, Profile], first: Array, second: Array
) -> Coverage:
    truth = pair[0].expected_matches - pair[1].expected_matches
    before, now = [], []
    for a, b in zip(first.T, second.T, strict=True):
        result, counts = compare_matches(Stratum("", np.column_stack([a, b]), design()))
        before.append(tango_interval(counts))
        now.append((result.low, result.high))
    bounds = [np.array(part).T for part in (before, now)]
    (low, high), (now_low, now_high) = bounds
    return Coverage(
        f"{name}: exact",
        covered(low, high, truth),
        100 * float(np.mean(high - low)),
        covered(now_low, now_high, truth),
        100 * float(np.mean(now_high - now_low)),
    )


def coverage_of_the_mean_of_tasks(samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage of the mean of nine tasks, two of which share their lists.

    `before` takes all items as independent.
    """
    rng = np.random.default_rng(SEED)
    tasks = {**PROFILES, "Std": PROFILES["Mean, weak"], "Sort": constant(5, 0.999)}
    tasks["MinMax"] = constant(2, 0.999)
    for name, level in (
        ("weak model", tasks),
        ("strong model", dict.fromkeys(tasks, constant(5, 0.5))),
    ):
        strata, plain = [], []
        lists = np.arange(ITEMS)
        u_lists = draw_difficulties(rng, samples)
        luck = rng.random(u_lists.shape)
        for number, (task, profile) in enumerate(level.items()):
            if task in ("Mean, weak", "Std"):
                keys, u, shared = [("list", key) for key in lists.tolist()], u_lists, luck
            else:
                keys = [(str(number), key) for key in lists.tolist()]
                u = draw_difficulties(rng, samples)
                shared = rng.random(u.shape)
            scores = answer(rng, profile, u, shared).scores
            strata.append(Stratum(task, scores, design(), keys))
            plain.append(Stratum(task, scores))
        truth = float(np.mean([profile.expected_score for profile in level.values()]))
        _, low, high = mean_intervals(plain, 1.0)
        _, now_low, now_high = mean_intervals(strata, 1.0)
        yield Coverage(
            f"mean of nine tasks, {name}",
            covered(low, high, truth),
            100 * float(np.mean(high - low)),
            covered(now_low, now_high, truth),
            100 * float(np.mean(now_high - now_low)),
        )


def coverage_of_tokens(samples: int = 1000) -> Iterator[tuple[str, float]]:
    """Yield the coverage of the mean of token counts, which are log-normally distributed.

    The counts of a stratified dataset also grow with difficulty, by a factor of e^1.5.
    """
    rng = np.random.default_rng(SEED)
    for items, spread in ((50, 0.5), (50, 1.0), (50, 1.5), (500, 0.5), (500, 1.0), (500, 1.5)):
        drawn = rng.lognormal(0, spread, (items, samples))
        bounds = bootstrap_means([Stratum("", column[:, None]) for column in drawn.T])
        low, high = np.array(bounds).T
        name = f"{items} items, standard deviation of the logarithm {spread:g}"
        yield name, covered(low, high, np.exp(spread**2 / 2))
    u = draw_difficulties(rng, samples)
    drawn = np.exp(1.5 * u) * rng.lognormal(0, 0.6, u.shape)
    bounds = bootstrap_means([Stratum("", column[:, None], design()) for column in drawn.T])
    low, high = np.array(bounds).T
    yield "500 items of v1, 0.6", covered(low, high, np.expm1(1.5) / 1.5 * np.exp(0.18))


class Power(NamedTuple):
    """A difference in points, and the share of samples in which it is found."""

    name: str
    difference: float
    power: float


def simulated_power_of_matches(samples: int = SAMPLES // 2) -> Iterator[Power]:
    """Yield the simulated power of verdicts on exact match at the minimum detectable difference."""
    rng = np.random.default_rng(SEED)
    yield Power("6 of 500 items", 1.2, _match_power(rng, 6 / ITEMS, 6 / ITEMS, samples))
    for discordant in (0, 10, 20, 50, 100, 250):
        true = minimum_detectable_difference(DiscordantCounts(discordant, 0, ITEMS))
        assert true is not None
        discordance = max(discordant / ITEMS, true)
        power = _match_power(rng, discordance, true, samples)
        yield Power(f"exact match, {discordant} of 500 differ", 100 * true, power)


def _match_power(
    rng: np.random.Generator, discordance: float, difference: float, samples: int
) -> float:
    """Return the share of samples of the design of v1 with p ≤ 5 % and an interval above 0."""
    drawn = np.where(rng.random((ITEMS, samples)) < (1 + difference / discordance) / 2, 1.0, -1.0)
    drawn *= rng.random(drawn.shape) < discordance
    ordered, independent = (
        residual_squares(Stratum("", drawn, items)) for items in (design(), None)
    )
    effects = ((ordered + 2) / (independent + 2)).tolist()
    found = 0
    for column, effect in zip(drawn.T, effects, strict=True):
        first, second = int(np.sum(column > 0)), int(np.sum(column < 0))
        if first > second and mcnemar(first, second) <= 0.05:
            counts = DiscordantCounts(first, second, ITEMS)
            found += tango_interval(counts, design_effect=effect)[0] > 0
    return found / samples


SIZES_OF_DIFFERENCES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "unequal": lambda rng, count: rng.beta(1, 2, count),
    "7 points": lambda rng, count: np.full(count, 0.07),
    "one in ten of 100, others up to 3": lambda rng, count: np.where(
        np.arange(count) % 10 == 1, 1.0, 0.03 * rng.random(count)
    ),
}
"""Absolute differences of items, of scores in 0 … 1."""


def simulated_power_of_scores(samples: int = 1000) -> Iterator[Power]:
    """Yield the simulated power of verdicts on log-sMAPE at the minimum detectable difference.

    Items differ by amounts of one set of sizes, more often in the better model's direction; if all
    would have to be in that direction, more items differ.
    """
    rng = np.random.default_rng(SEED)
    for name, draw_sizes in SIZES_OF_DIFFERENCES.items():
        for differing in (2, 8, 15, 30, 60, 200, 500):
            sizes = draw_sizes(rng, differing)
            shares = np.zeros(ITEMS)
            shares[:differing] = sizes / ITEMS
            true = minimum_detectable_mean_difference(shares, 1 / ITEMS, 1.0)
            assert true is not None
            drawn = _draw_differences(rng, sizes, differing / ITEMS, true, samples)
            power = _share_of_verdicts([Stratum("", drawn, design())])
            yield Power(f"log-sMAPE, {differing} of 500 differ, {name}", 100 * true, power)


def _draw_differences(
    rng: np.random.Generator, sizes: Array, probability: float, true: float, samples: int
) -> Array:
    """Return differences of `sizes` with the mean `true`, shape (items, samples)."""
    mean = float(sizes.mean())
    probability = max(probability, true / mean)
    drawn = rng.choice(sizes, (ITEMS, samples))
    drawn *= np.where(rng.random(drawn.shape) < (1 + true / mean / probability) / 2, 1, -1)
    return np.asarray(drawn * (rng.random(drawn.shape) < probability))


def _share_of_verdicts(strata: Sequence[Stratum]) -> float:
    p = permutation_test(strata).overall
    return float(np.mean((p <= 0.05) & (difference_intervals(strata, 1.0).low > 0)))


def simulated_power_of_means(samples: int = 1000) -> Iterator[Power]:
    """Yield the same for the mean of Mean and Std, with shared lists, and of four other tasks."""
    rng = np.random.default_rng(SEED)
    for name, shared, tasks in (("Mean and Std", True, 2), ("four tasks", False, 4)):
        for differing in (15, 60, 300):
            sizes = rng.beta(1, 2, differing)
            pilot = [rng.permutation(np.append(sizes, np.zeros(ITEMS - differing)))] * tasks
            signs = rng.choice([-1, 1], ITEMS)
            keys = [[(number * (not shared), key) for key in range(ITEMS)] for number in range(4)]
            strata = [
                Stratum(str(number), np.column_stack([np.maximum(values * signs, 0),
                        np.maximum(-values * signs, 0)]), design(), keys[number])
                for number, values in enumerate(pilot)
            ]  # fmt: skip
            (result,) = compare(strata, [(0, 1)], 1.0).overall
            assert result is not None and result.minimum_detectable is not None
            true = result.minimum_detectable
            drawn = [
                _draw_differences(rng, sizes, differing / ITEMS, true, samples)
                for _ in range(1 if shared else tasks)
            ] * (tasks if shared else 1)
            again = [
                Stratum(stratum.name, values, design(), stratum.clusters)
                for stratum, values in zip(strata, drawn, strict=True)
            ]
            power = _share_of_verdicts(again)
            yield Power(f"mean of {name}, {differing} of 500 differ", 100 * true, power)


def false_non_inferiority(samples: int = SAMPLES // 2, margin: float = 1.0) -> Iterator[Power]:
    """Yield how often a regression of exactly `margin` points is wrongly excluded: 5 % at most."""
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
    nine = [-1.0 * (rng.random((ITEMS, samples)) < 0.0007) for _ in range(9)]
    yield Power("mean of nine tasks, losses of 100", 0.07, _wrongly_excluded(nine, 0.07))


def _wrongly_excluded(differences: Sequence[Array], margin: float) -> float:
    strata = [Stratum(str(number), each, design()) for number, each in enumerate(differences)]
    return float(np.mean(one_sided_bounds(strata, 1.0).at_least > -margin / 100))


def wrong_verdicts(samples: int = 1000) -> Iterator[tuple[str, float, float]]:
    """Yield how often equal models give the verdict better, and a one-sided bound excludes 0.

    Small gains on many items are balanced by losses of 100 that most samples do not contain.
    """
    rng = np.random.default_rng(SEED)
    for share, gain in ((0.03, 0.07), (0.06, 0.07), (0.24, 0.07), (0.2, 0.2), (0.05, 1.0)):
        u = rng.random((ITEMS, samples))
        loss = share * gain
        drawn = np.where(u < loss, -1.0, np.where(u < loss + share, gain, 0.0))
        strata = [Stratum("", drawn)]
        name = f"{share:.0%} of the items + {100 * gain:.0f}, {loss:.1%} - 100"
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
            p += permutation_test([Stratum(str(task), differences)]).strata[0].tolist()
        wrong += min(holm(p)) <= 0.05
    return wrong / samples


class Precision(NamedTuple):
    """Items planned from a pilot, and the half-width in points that so many items had."""

    name: str
    planned: float
    items: int
    half_width: float


def planned_precision(samples: int = 300) -> Iterator[Precision]:
    """Yield the mean half-width of datasets with the items that pilots of 500 items planned."""
    rng = np.random.default_rng(SEED)
    for name in ("Mult, weak", "Add, weak", "Mean, weak"):
        profile, planned = PROFILES[name], 1.5
        u = draw_difficulties(rng, samples)
        pilots = 100 * answer(rng, profile, u, rng.random(u.shape)).scores
        variances = [
            item_variance(scores[:, None], design()).with_pseudo_items(ITEMS, float(scores.mean()))
            for scores in pilots.T
        ]
        needed = [items_for_precision(v, planned, pool=POOL_SIZE) for v in variances]
        # Pools are cut into strata of equal size here, so the number has to divide 10,000.
        mean = round(float(np.mean(needed)))
        divisors = [n for n in range(1, POOL_SIZE) if POOL_SIZE % n == 0]
        items = min(divisors, key=lambda n: abs(n - mean))
        u = draw_difficulties(rng, samples, items)
        scores = answer(rng, profile, u, rng.random(u.shape)).scores
        _, low, high = mean_intervals([Stratum("", scores, design(items))], 1.0)
        # Half-widths shrink with the root of the number of items.
        half = 50 * float(np.mean(high - low)) * (items / mean) ** 0.5
        yield Precision(name, planned, mean, half)


def print_coverage(title: str, rows: Sequence[Coverage]) -> None:
    print(f"\n## {title}\n")
    print("| | before | width | now | width |\n|---|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row.name} | {row.before:.1%} | {row.before_width:.2f} | {row.now:.1%} "
            f"| {row.now_width:.2f} |"
        )


def print_power(title: str, rows: Sequence[Power], heading: str) -> None:
    print(f"\n## {title}\n\n| | difference | {heading} |\n|---|---:|---:|")
    for row in rows:
        print(f"| {row.name} | {row.difference:.2f} | {row.power:.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    samples = arguments.samples
    stratified = list(coverage_of_stratified_scores(samples))
    ceiling = list(coverage_near_the_ceiling(samples))
    powers = [
        *simulated_power_of_matches(samples // 2),
        *simulated_power_of_scores(),
        *simulated_power_of_means(),
    ]
    print("# Coverage and power, simulated")
    print(
        f"\n`python benchmarks/intervals.py --samples {samples}`. Nominal coverage: 95 %. Before:"
    )
    print("percentile bootstrap or Wilson's interval of independent items. Widths in points.")
    print_coverage("Scores on the design of v1", stratified)
    print_coverage("Part of the items of v1", list(coverage_of_part_of_the_items(samples)))
    print_coverage("Near the ceiling: expected errors in 500, losing half the score", ceiling)
    print_coverage("Losing a tenth", list(coverage_near_the_ceiling(samples, 0.1)))
    print_coverage("Losing all", list(coverage_near_the_ceiling(samples, 0.999)))
    print_coverage("Differences", list(coverage_of_differences(samples)))
    print_coverage("Mean of tasks", list(coverage_of_the_mean_of_tasks(samples)))
    print("\n## Mean tokens\n\n| | coverage |\n|---|---:|")
    for name, share in coverage_of_tokens():
        print(f"| {name} | {share:.1%} |")
    print_power("Verdicts at the minimum detectable difference (80 %)", powers, "verdicts")
    false = list(false_non_inferiority(samples // 2))
    print_power("A regression of the margin, wrongly excluded (5 %)", false, "excluded")
    print("\n## A verdict of better for equal models (2.5 %), and bounds that exclude 0 (5 %)\n")
    print("| | verdict | at_least > 0 |\n|---|---:|---:|")
    for name, verdicts, excluded in wrong_verdicts():
        print(f"| {name} | {verdicts:.1%} | {excluded:.1%} |")
    print(
        f"\nRank sets of six equal runs on four tasks, any of them wrong: {wrong_rank_sets():.1%}"
    )
    print(
        "\n## Planned and actual half-width\n\n| | planned | items | actual |\n|---|---:|---:|---:|"
    )
    for row in planned_precision():
        print(f"| {row.name} | {row.planned:.2f} | {row.items:,} | {row.half_width:.2f} |")
    if arguments.figure:
        draw_figure(arguments.figure, stratified, ceiling, powers)


def draw_figure(
    path: Path, stratified: Sequence[Coverage], ceiling: Sequence[Coverage], powers: Sequence[Power]
) -> None:
    """Draw coverage before and now, and the power at the minimum detectable difference."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "numbench", "font.size": 8})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.2), width_ratios=(3, 2, 2))
    names = [row.name for row in stratified]
    rows = np.arange(len(names))
    left.plot([100 * row.before for row in stratified], rows, "o", mfc="none", c="#888888")
    left.plot([100 * row.now for row in stratified], rows, "o", c="#0072B2")
    left.set_yticks(rows, names)
    left.invert_yaxis()
    left.set(xlabel="coverage in percent", xlim=(90, 100.5), title="design of v1")
    left.axvline(95, c="black", lw=0.7)
    errors = [float(row.name) for row in ceiling]
    middle.semilogx(errors, [100 * row.before for row in ceiling], "o-", mfc="none", c="#888888")
    middle.semilogx(errors, [100 * row.now for row in ceiling], "o-", c="#0072B2")
    middle.set_xticks(errors, [row.name for row in ceiling])
    middle.minorticks_off()
    middle.set(xlabel="expected errors in 500", title="coverage near the ceiling", ylim=(20, 101))
    middle.axhline(95, c="black", lw=0.7)
    middle.legend(["before", "now"], loc="lower right", frameon=False)
    for label, part, colour in (
        ("exact match", "exact match", "#D55E00"),
        ("log-sMAPE", "unequal", "#0072B2"),
        ("differences of 7 points", "7 points", "#009E73"),
    ):
        shown = [row for row in powers if part in row.name]
        counts = [int(row.name.split(", ")[1].split()[0]) for row in shown]
        right.plot(counts, [100 * row.power for row in shown], "o-", c=colour, label=label)
    right.plot(
        [0], [100 * powers[0].power], "o", mfc="none", c="#888888", label="six items (before)"
    )
    right.set_xscale("symlog", linthresh=10)
    right.set(xlabel="items that differ, of 500", title="verdicts at the minimum", ylim=(50, 100))
    right.axhline(80, c="black", lw=0.7)
    right.legend(loc="upper right", frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
