"""What the paper says of frontier models, tested on any set of scores.

Each claim is read as a test that is written beside it on the page. It is made on the paper's own
table, on the study's scoring of the configurations at hand, and on their scores under exact truth.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.report.layout import LOG_SMAPE, TOKENS, Entry, Estimate
from bench.tasks import TASKS

HARD = ("multiplication", "division", "exponentiation", "std")
COMPARISONS = ("minmax", "interval", "sorting")
MAXIMAL = "maximal"


class Claim(msgspec.Struct, frozen=True):
    """A claim in the paper's words, where it stands, and as what it is tested."""

    section: str
    quote: str
    reading: str


class Finding(NamedTuple):
    """What scores say of a claim: whether it holds (None: they cannot tell), and the numbers."""

    holds: bool | None
    text: str


class Cell(NamedTuple):
    """One score, and whose."""

    entry: Entry
    task: str
    estimate: Estimate

    @property
    def value(self) -> float:
        return self.estimate.value

    @property
    def named(self) -> str:
        return f"{TASKS[self.task].display} {self.value:.1f} ({_name(self.entry)})"


Test = Callable[[Sequence[Entry]], Finding]


@cache
def claims() -> dict[str, Claim]:
    """The claims by name, in the order of the page."""
    text = (Path(__file__).parent / "claims.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Claim])


def _name(entry: Entry) -> str:
    return f"{entry.name}, {entry.reasoning}"


def _cells(
    entries: Iterable[Entry], tasks: Iterable[str], table: str = LOG_SMAPE.name
) -> Iterator[Cell]:
    for entry in entries:
        for task in tasks:
            estimate = entry.tables.get(table, {}).get(task)
            if estimate is not None:
                yield Cell(entry, task, estimate)


def _lowest(cells: Iterable[Cell]) -> Cell | None:
    return min(cells, key=lambda cell: cell.value, default=None)


def _highest(cells: Iterable[Cell]) -> Cell | None:
    return max(cells, key=lambda cell: cell.value, default=None)


def _with(entries: Iterable[Entry], maximal: bool) -> list[Entry]:
    return [entry for entry in entries if (entry.reasoning == MAXIMAL) == maximal]


def _untold(why: str) -> Finding:
    return Finding(None, why)


def comparisons_solved(entries: Sequence[Entry]) -> Finding:
    complete = [e for e in entries if len(list(_cells([e], COMPARISONS))) == len(COMPARISONS)]
    lowest = _lowest(_cells(complete, COMPARISONS))
    if lowest is None:
        return _untold("no configuration with all three tasks")
    solved = sum(all(cell.value >= 99 for cell in _cells([e], COMPARISONS)) for e in complete)
    text = f"{solved} of {len(complete)} reach 99 on all three; lowest {lowest.named}"
    return Finding(10 * solved >= 9 * len(complete), text)


def simple_tasks_solved(entries: Sequence[Entry]) -> Finding:
    return _at_least(95, entries, ("addition", "sorting"))


def addition_and_mean_excellent(entries: Sequence[Entry]) -> Finding:
    return _at_least(90, entries, ("addition", "mean"))


def _at_least(bound: float, entries: Sequence[Entry], tasks: Sequence[str]) -> Finding:
    lowest = [_lowest(_cells(entries, [task])) for task in tasks]
    found = [cell for cell in lowest if cell is not None]
    if len(found) < len(tasks):
        return _untold("a task has no scores")
    text = "lowest " + ", ".join(cell.named for cell in found)
    return Finding(all(cell.value >= bound for cell in found), text)


def clear_separation(entries: Sequence[Entry]) -> Finding:
    parts, apart = [], []
    for task in HARD:
        low = _lowest(_cells(_with(entries, maximal=True), [task]))
        high = _highest(_cells(_with(entries, maximal=False), [task]))
        if low is None or high is None:
            return _untold("needs configurations with maximal reasoning and without, on all four")
        apart.append(low.value > high.value)
        parts.append(f"{TASKS[task].display} {low.value:.1f} / {high.value:.1f}")
    count = len(_with(entries, maximal=True))
    text = f"lowest of {count} maximal / highest of {len(entries) - count} others"
    return Finding(all(apart), f"{text}: {', '.join(parts)}")


def none_above_sixty(entries: Sequence[Entry]) -> Finding:
    highest = _highest(_cells(_with(entries, maximal=False), HARD))
    if highest is None:
        return _untold("no configuration below maximal reasoning")
    return Finding(highest.value <= 60, f"highest {highest.named}")


def reasoning_improves(entries: Sequence[Entry]) -> Finding:
    gains = [
        (maximal.value - other.value, maximal)
        for maximal in _cells(_with(entries, maximal=True), HARD)
        for other in _cells(_with(entries, maximal=False), [maximal.task])
        if other.entry.model == maximal.entry.model
    ]
    if not gains:
        return _untold("no model at two levels")
    least, cell = min(gains, key=lambda gain: gain[0])
    better = sum(gain > 0 for gain, _ in gains)
    text = (
        f"better in {better} of {len(gains)} cells; least gain {least:+.1f} points "
        f"({TASKS[cell.task].display}, {cell.entry.name})"
    )
    return Finding(better == len(gains), text)


def thousands_of_tokens(entries: Sequence[Entry]) -> Finding:
    cells = list(_cells(_with(entries, maximal=True), HARD, TOKENS.name))
    low, high = _lowest(cells), _highest(cells)
    if low is None or high is None:
        return _untold("no token counts with maximal reasoning")
    inside = [cell for cell in cells if 5_000 <= cell.value <= 30_000]
    ends = " to ".join(
        f"{cell.value:,.0f} ({TASKS[cell.task].display}, {cell.entry.name})" for cell in (low, high)
    )
    return Finding(len(inside) == len(cells), f"{len(inside)} of {len(cells)} cells; {ends}")


def stable_at_500(entries: Sequence[Entry]) -> Finding:
    reach = [
        (max(bounded[2] - bounded[0], bounded[0] - bounded[1]), cell)
        for cell in _cells(entries, TASKS)
        if (bounded := cell.estimate.bounded)
    ]
    if not reach:
        return _untold("no intervals are published")
    widest, cell = max(reach, key=lambda found: found[0])
    steady = sum(width <= 1 for width, _ in reach)
    text = (
        f"{steady} of {len(reach)} scores; the widest reaches {widest:.1f} points "
        f"({TASKS[cell.task].display}, {_name(cell.entry)})"
    )
    return Finding(steady == len(reach), text)


TESTS: dict[str, Test] = {
    "comparisons_solved": comparisons_solved,
    "simple_tasks_solved": simple_tasks_solved,
    "addition_and_mean_excellent": addition_and_mean_excellent,
    "clear_separation": clear_separation,
    "none_above_sixty": none_above_sixty,
    "reasoning_improves": reasoning_improves,
    "thousands_of_tokens": thousands_of_tokens,
    "stable_at_500": stable_at_500,
}


def judgement(before: Finding, after: Finding) -> str:
    """What re-scoring does to a claim, in a few words."""
    if before.holds is None or after.holds is None:
        return "cannot be told with these files"
    if before.holds:
        return "holds, by either scoring" if after.holds else "no longer holds"
    return (
        "holds now, and did not by the study's scoring"
        if after.holds
        else ("does not hold, by either scoring")
    )
