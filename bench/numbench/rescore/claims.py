"""The paper's claims about frontier models, as tests on a set of scores.

`claims.toml` gives each claim and its interpretation as a test. The page applies the test to the
paper's own table, and to the available configurations by the study's scoring and by exact
scoring.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench.reporting.table_model import LOG_SMAPE, TOKENS, Entry, Estimate
from numbench.tasks import PAPER_TASKS, TASKS

HARD = ("multiplication", "division", "exponentiation", "std")
COMPARISONS = ("minmax", "interval", "sorting")
MAXIMAL = "maximal"


class Claim(msgspec.Struct, frozen=True):
    """A claim: section of the paper, verbatim quote, and interpretation as a test."""

    section: str
    quote: str
    reading: str


class ClaimResult(NamedTuple):
    """Result of a test: whether the claim holds (None: undecided), and the numbers as text."""

    holds: bool | None
    text: str


class ClaimCell(NamedTuple):
    """One score with its configuration and task."""

    entry: Entry
    task: str
    estimate: Estimate

    @property
    def value(self) -> float:
        return self.estimate.value

    @property
    def named(self) -> str:
        return f"{TASKS[self.task].display} {self.value:.1f} ({_name(self.entry)})"


ClaimTest = Callable[[Sequence[Entry]], ClaimResult]


@cache
def claims() -> dict[str, Claim]:
    """Return the claims by name, in the order of the page."""
    text = (Path(__file__).parent / "claims.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Claim])


def _name(entry: Entry) -> str:
    return f"{entry.name}, {entry.reasoning}"


def _cells(
    entries: Iterable[Entry], tasks: Iterable[str], table: str = LOG_SMAPE.name
) -> Iterator[ClaimCell]:
    for entry in entries:
        for task in tasks:
            estimate = entry.tables.get(table, {}).get(task)
            if estimate is not None:
                yield ClaimCell(entry, task, estimate)


def _lowest(cells: Iterable[ClaimCell]) -> ClaimCell | None:
    return min(cells, key=lambda cell: cell.value, default=None)


def _highest(cells: Iterable[ClaimCell]) -> ClaimCell | None:
    return max(cells, key=lambda cell: cell.value, default=None)


def _by_level(entries: Iterable[Entry], maximal: bool) -> list[Entry]:
    return [entry for entry in entries if (entry.reasoning == MAXIMAL) == maximal]


def _undecided(reason: str) -> ClaimResult:
    return ClaimResult(None, reason)


def comparisons_solved(entries: Sequence[Entry]) -> ClaimResult:
    complete = [e for e in entries if len(list(_cells([e], COMPARISONS))) == len(COMPARISONS)]
    lowest = _lowest(_cells(complete, COMPARISONS))
    if lowest is None:
        return _undecided("no configuration with all three tasks")
    solved = sum(all(cell.value >= 99 for cell in _cells([e], COMPARISONS)) for e in complete)
    text = f"{solved} of {len(complete)} reach 99 on all three; lowest {lowest.named}"
    return ClaimResult(10 * solved >= 9 * len(complete), text)


def simple_tasks_solved(entries: Sequence[Entry]) -> ClaimResult:
    return _at_least(95, entries, ("addition", "sorting"))


def addition_and_mean_excellent(entries: Sequence[Entry]) -> ClaimResult:
    return _at_least(90, entries, ("addition", "mean"))


def _at_least(bound: float, entries: Sequence[Entry], tasks: Sequence[str]) -> ClaimResult:
    lowest = [_lowest(_cells(entries, [task])) for task in tasks]
    cells = [cell for cell in lowest if cell is not None]
    if len(cells) < len(tasks):
        return _undecided("a task has no scores")
    text = "lowest " + ", ".join(cell.named for cell in cells)
    return ClaimResult(all(cell.value >= bound for cell in cells), text)


def clear_separation(entries: Sequence[Entry]) -> ClaimResult:
    parts, is_separated = [], []
    for task in HARD:
        low = _lowest(_cells(_by_level(entries, maximal=True), [task]))
        high = _highest(_cells(_by_level(entries, maximal=False), [task]))
        if low is None or high is None:
            return _undecided(
                "needs configurations with and without maximal reasoning on all four tasks"
            )
        is_separated.append(low.value > high.value)
        parts.append(f"{TASKS[task].display} {low.value:.1f} / {high.value:.1f}")
    count = len(_by_level(entries, maximal=True))
    text = f"lowest of {count} maximal / highest of {len(entries) - count} others"
    return ClaimResult(all(is_separated), f"{text}: {', '.join(parts)}")


def none_above_sixty(entries: Sequence[Entry]) -> ClaimResult:
    highest = _highest(_cells(_by_level(entries, maximal=False), HARD))
    if highest is None:
        return _undecided("no configuration below maximal reasoning")
    return ClaimResult(highest.value <= 60, f"highest {highest.named}")


def reasoning_improves(entries: Sequence[Entry]) -> ClaimResult:
    gains = [
        (maximal.value - other.value, maximal)
        for maximal in _cells(_by_level(entries, maximal=True), HARD)
        for other in _cells(_by_level(entries, maximal=False), [maximal.task])
        if other.entry.model == maximal.entry.model
    ]
    if not gains:
        return _undecided("no model at two levels")
    smallest, cell = min(gains, key=lambda gain: gain[0])
    better = sum(gain > 0 for gain, _ in gains)
    text = (
        f"better in {better} of {len(gains)} cells; smallest gain {smallest:+.1f} points "
        f"({TASKS[cell.task].display}, {cell.entry.name})"
    )
    return ClaimResult(better == len(gains), text)


def thousands_of_tokens(entries: Sequence[Entry]) -> ClaimResult:
    cells = list(_cells(_by_level(entries, maximal=True), HARD, TOKENS.name))
    low, high = _lowest(cells), _highest(cells)
    if low is None or high is None:
        return _undecided("no token counts with maximal reasoning")
    inside = [cell for cell in cells if 5_000 <= cell.value <= 30_000]
    extremes = " to ".join(
        f"{cell.value:,.0f} ({TASKS[cell.task].display}, {cell.entry.name})" for cell in (low, high)
    )
    return ClaimResult(
        len(inside) == len(cells), f"{len(inside)} of {len(cells)} cells; {extremes}"
    )


def stable_at_500(entries: Sequence[Entry]) -> ClaimResult:
    distances = [
        (max(bounded[2] - bounded[0], bounded[0] - bounded[1]), cell)
        for cell in _cells(entries, PAPER_TASKS)
        if (bounded := cell.estimate.value_and_bounds)
    ]
    if not distances:
        return _undecided("no intervals are published")
    largest, cell = max(distances, key=lambda pair: pair[0])
    stable = sum(distance <= 1 for distance, _ in distances)
    text = (
        f"{stable} of {len(distances)} scores; the largest distance of a bound is "
        f"{largest:.1f} points ({TASKS[cell.task].display}, {_name(cell.entry)})"
    )
    return ClaimResult(stable == len(distances), text)


TESTS: dict[str, ClaimTest] = {
    "comparisons_solved": comparisons_solved,
    "simple_tasks_solved": simple_tasks_solved,
    "addition_and_mean_excellent": addition_and_mean_excellent,
    "clear_separation": clear_separation,
    "none_above_sixty": none_above_sixty,
    "reasoning_improves": reasoning_improves,
    "thousands_of_tokens": thousands_of_tokens,
    "stable_at_500": stable_at_500,
}


def claim_status(before: ClaimResult, after: ClaimResult) -> str:
    """Describe how re-scoring changes the result of a claim."""
    if before.holds is None or after.holds is None:
        return "undecided with these files"
    if before.holds:
        return "holds by both scorings" if after.holds else "no longer holds"
    return "holds only by exact scoring" if after.holds else "does not hold by either scoring"
