"""Simulated coverage of intervals, on data like the real ones.

Items are drawn like those of `v1`: a pool of 10,000 is ranked by difficulty, and one item is drawn
from each of 500 strata. Score functions of difficulty resemble those of the paper's models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.dataset.settings import POOL_SIZE
from numbench.stats.bootstrap import percentile_bounds
from numbench.stats.design import Design, Stratum
from numbench.stats.intervals import bootstrap_means, difference_intervals, mean_intervals
from numbench.stats.mcnemar import tango_interval
from numbench.stats.paired import compare_matches
from numbench.stats.resampling import bootstrap_weights

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
    samples = first.shape[1]
    matches = Stratum("", np.column_stack([first, second]), design())
    results = compare_matches(matches, [(index, samples + index) for index in range(samples)])
    known = [result for result in results if result]
    low, high = np.array([tango_interval(counts) for _, counts in known]).T
    now_low, now_high = np.array([(result.low, result.high) for result, _ in known]).T
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
