"""Simulated coverage of intervals, on data like the real ones.

Items are drawn like those of `v1`: a pool of 10,000 is ranked by difficulty, and one item is drawn
from each of 500 strata; or independently, like those of `paper`. Score functions of difficulty
resemble those of the paper's models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.dataset.settings import POOL_SIZE
from numbench.stats.design import Design, Stratum
from numbench.stats.intervals import (
    MeanIntervals,
    amount_intervals,
    difference_intervals,
    mean_intervals,
)

ITEMS = 500
SAMPLES = 4000
SEED = 20_251_122
_CHUNK = 250

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
    """The share of intervals that include the true value, and their mean width in points."""

    name: str
    share: float
    width: float


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


def coverage(name: str, intervals: MeanIntervals, truth: float) -> Coverage:
    _, low, high = intervals
    share = float(np.mean((low <= truth) & (truth <= high)))
    return Coverage(name, share, 100 * float(np.mean(high - low)))


def coverage_of_scores(stratified: bool, samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage for each profile, of log-sMAPE and of exact match."""
    rng = np.random.default_rng(SEED)
    of_items = design() if stratified else None
    for name, profile in PROFILES.items():
        u = draw_difficulties(rng, samples, stratified=stratified)
        drawn = answer(rng, profile, u, rng.random(u.shape))
        scores, matches = (Stratum("", values, of_items) for values in drawn)
        truth = profile.expected_score
        yield coverage(f"{name}: log-sMAPE", mean_intervals([scores], 1.0), truth)
        truth = profile.expected_matches
        yield coverage(f"{name}: exact match", mean_intervals([matches], 1.0), truth)


def coverage_near_the_ceiling(samples: int = SAMPLES, loss: float = 0.5) -> Iterator[Coverage]:
    """Yield the coverage for each of `EXPECTED_ERRORS`; wrong answers lose `loss` on average."""
    rng = np.random.default_rng(SEED)
    for errors in EXPECTED_ERRORS:
        u = rng.random((ITEMS, samples))
        profile = constant(errors, loss)
        drawn = answer(rng, profile, u, rng.random(u.shape))
        now = mean_intervals([Stratum("", drawn.scores)], 1.0)
        yield coverage(f"{errors:g}", now, profile.expected_score)


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
        yield coverage(f"{items} of 500 items", now, profile.expected_score)


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


def coverage_of_differences(stratified: bool, samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage of differences between two models, of log-sMAPE and of exact match."""
    rng = np.random.default_rng(SEED)
    of_items = design() if stratified else None
    for name, pair in PAIRS.items():
        u = draw_difficulties(rng, samples, stratified=stratified)
        first, second = draw_pair(rng, pair, u)
        for metric, a, b, truth in (
            ("log-sMAPE", *(first.scores, second.scores), _gap(pair, "expected_score")),
            ("exact match", *(first.matches, second.matches), _gap(pair, "expected_matches")),
        ):
            now = difference_intervals([Stratum("", a - b, of_items)], 1.0)
            yield coverage(f"{name}: {metric}", now, truth)


def _gap(pair: tuple[Profile, Profile], name: str) -> float:
    first, second = (float(getattr(profile, name)) for profile in pair)
    return first - second


def draw_tasks(
    rng: np.random.Generator, profiles: dict[str, Profile], samples: int, models: int = 1
) -> list[list[Stratum]]:
    """Return per model the scores of its tasks on the design of `v1`. Mean and Std share lists."""
    strata: list[list[Stratum]] = [[] for _ in range(models)]
    items = np.arange(ITEMS)
    u_lists = draw_difficulties(rng, samples)
    luck = [rng.random(u_lists.shape) for _ in range(models)]
    for number, (task, profile) in enumerate(profiles.items()):
        is_list = task in ("Mean, weak", "Std")
        keys = [("list" if is_list else str(number), key) for key in items.tolist()]
        u = u_lists if is_list else draw_difficulties(rng, samples)
        for model in range(models):
            scores = answer(rng, profile, u, luck[model] if is_list else rng.random(u.shape)).scores
            strata[model].append(Stratum(task, scores, design(), keys))
    return strata


WEAK_MODEL = {
    **PROFILES,
    "Std": PROFILES["Mean, weak"],
    "Sort": constant(5, 0.999),
    "MinMax": constant(2, 0.999),
}
STRONG_MODEL = dict.fromkeys(WEAK_MODEL, constant(5, 0.5))
MODELS = {"weak model": WEAK_MODEL, "strong model": STRONG_MODEL}


def coverage_of_the_mean_of_tasks(samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage of the mean of nine tasks, two of which share their lists."""
    rng = np.random.default_rng(SEED)
    for name, model in MODELS.items():
        (strata,) = draw_tasks(rng, model, samples)
        truth = float(np.mean([profile.expected_score for profile in model.values()]))
        yield coverage(f"mean of nine tasks, {name}", mean_intervals(strata, 1.0), truth)


def coverage_of_tokens(samples: int = SAMPLES) -> Iterator[Coverage]:
    """Yield the coverage of the mean of token counts, which are log-normally distributed.

    The counts of a stratified dataset also grow with difficulty, by a factor of e^1.5.
    """
    rng = np.random.default_rng(SEED)
    for items, spread in ((50, 0.5), (50, 1.0), (50, 1.5), (500, 0.5), (500, 1.0), (500, 1.5)):
        drawn = rng.lognormal(0, spread, (items, samples))
        now = amount_intervals([Stratum("", drawn)])
        name = f"{items} items, standard deviation of the logarithm {spread:g}"
        yield coverage(name, now, float(np.exp(spread**2 / 2)))
    u = draw_difficulties(rng, samples)
    drawn = np.exp(1.5 * u) * rng.lognormal(0, 0.6, u.shape)
    now = amount_intervals([Stratum("", drawn, design())])
    yield coverage("500 items of v1, 0.6", now, float(np.expm1(1.5) / 1.5 * np.exp(0.18)))
    for items in (100, 500, 2000):
        endless = rng.random((items, samples)) < 0.002
        now = amount_intervals(
            [Stratum("", np.where(endless, 65_535, rng.poisson(20, endless.shape)))]
        )
        name = f"0.2% endless answers of 65,535 tokens, others 20, {items:,} items"
        yield coverage(name, now, 0.002 * 65_535 + 0.998 * 20)
