"""Two runs of one benchmark, the old and the new: has a score fallen by more than noise?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.errors import BadInput
from bench.journal import find_runs
from bench.records import ProtocolName
from bench.report.comparison_tables import (
    difference_shown,
    p_shown,
    smallest_differences,
    task_name,
    too_few_items,
)
from bench.report.comparisons import OVERALL, WORSE, Contrast, compare_runs
from bench.report.layout import LOG_SMAPE, shown
from bench.scoring import Row, ScoredRun, score_run
from bench.scoring.run import NOT_ANSWERED

ANSWERED_SHARE = 0.95
"""The new run must have answered so much of what the old one did, asked again or not."""


class Regression(NamedTuple):
    """The new run against the old one, first against second in each contrast.

    notes: what a reader must know of what was compared. falls: why the new run does not pass,
    one phrase each; empty if it does.
    """

    contrasts: tuple[Contrast, ...]
    notes: tuple[str, ...]
    falls: tuple[str, ...]


def find_regression(
    old: Path, new: Path, protocol: ProtocolName, fail_below: float | None, partial: bool
) -> Regression:
    """Compare two runs task by task, and the mean of all nine where both have it.

    A task has fallen where it is shown to be worse, and by more than `fail_below` points if that
    is given. What the new run lacks of the old one fails it too, but with `partial` is a note,
    unless no item at all is answered by both. BadInput where the runs answer different datasets
    or have no items in common.
    """
    before, after = (score_run(_run_folder(path), protocol) for path in (old, new))
    if before.dataset.manifest.sha256 != after.dataset.manifest.sha256:
        raise BadInput(
            f"{old} answers dataset {_dataset(before)} and {new} {_dataset(after)}: only runs on "
            "one dataset can be compared"
        )
    if not set(before.rows) & set(after.rows):
        raise BadInput(f"{old} and {new} have no task in common")
    if not any(_answered(row) for rows in before.rows.values() for row in rows):
        raise BadInput(f"{old}: no item is answered, so there is nothing to compare with")
    contrasts = tuple(
        contrast
        for contrast in compare_runs([after, before]).contrasts
        if contrast.table == LOG_SMAPE.name
        and (contrast.task == OVERALL or _both_asked(before, after, contrast.task))
    )
    falls = [_fall(c) for c in contrasts if _fallen(c, fail_below)]
    notes = [*_smallest(contrasts), *_notes(before, after)]
    lacks = [*_missing(before, after), *_unanswered(before, after)]
    if partial and _share_answers(before, after):
        notes += [f"Partial: {lack}." for lack in lacks]
    else:
        falls += lacks
    return Regression(contrasts, tuple(notes), tuple(falls))


def _run_folder(path: Path) -> Path:
    folders = find_runs([path])
    if len(folders) > 1:
        raise BadInput(f"{path}: holds {len(folders)} runs; name one of them, such as {folders[0]}")
    return folders[0]


def _dataset(run: ScoredRun) -> str:
    return f"{run.dataset.name}@{run.dataset.manifest.sha256[:6]}"


def _answered(row: Row) -> bool:
    return row.score.status not in NOT_ANSWERED


def _both_asked(before: ScoredRun, after: ScoredRun, task: str) -> bool:
    return task in before.rows and task in after.rows


def _fallen(contrast: Contrast, fail_below: float | None) -> bool:
    if contrast.found is None or contrast.verdict != WORSE:
        return False
    return fail_below is None or contrast.found.difference < -fail_below


def _fall(contrast: Contrast) -> str:
    assert contrast.found and contrast.means
    new, old = (shown(mean, 1) for mean in contrast.means)
    return (
        f"{task_name(contrast.task)} fell from {old} to {new} ({difference_shown(contrast)} "
        f"points, p {p_shown(contrast.p_tasks)}, {contrast.found.n} items)"
    )


def _smallest(contrasts: Iterable[Contrast]) -> Iterator[str]:
    known = [(values.most, task) for task, values in smallest_differences(contrasts).items()]
    if known:
        (least, easy), (most, hard) = min(known), max(known)
        yield (
            "True differences that such items show with a power of 80 %, before Holm's correction: "
            f"from {least:.1f} points ({task_name(easy)}) to {most:.1f} ({task_name(hard)})."
        )
    few = [task_name(task) for task in too_few_items(contrasts)]
    if few:
        yield f"No difference can be shown on so few items: {', '.join(few)}."


def _share_answers(before: ScoredRun, after: ScoredRun) -> bool:
    return any(
        _answered(then) and _answered(now)
        for _, old, new in _common(before, after)
        for then, now in zip(old, new, strict=True)
    )


def _missing(before: ScoredRun, after: ScoredRun) -> Iterator[str]:
    missing = [task_name(task) for task in before.rows if task not in after.rows]
    if missing:
        what = missing[0] if len(missing) == 1 else f"{len(missing)} of {len(before.rows)} tasks"
        yield f"{what} not asked again"


def _unanswered(before: ScoredRun, after: ScoredRun) -> Iterator[str]:
    """Of the tasks that both runs have; an item that was not asked again has no answer."""
    short: dict[str, tuple[int, int]] = {}
    for task, old in before.rows.items():
        if task not in after.rows:
            continue
        wanted = sum(map(_answered, old))
        both = zip(old, after.rows[task], strict=False)
        kept = sum(_answered(then) and _answered(now) for then, now in both)
        if kept < ANSWERED_SHARE * wanted:
            short[task] = kept, wanted
    if short:
        kept, wanted = map(sum, zip(*short.values(), strict=True))
        where = task_name(next(iter(short))) if len(short) == 1 else f"{len(short)} tasks"
        yield (
            f"answers to {kept} of {wanted} items of {where} that were answered before "
            f"({ANSWERED_SHARE:.0%} needed of each task)"
        )


def _notes(before: ScoredRun, after: ScoredRun) -> Iterator[str]:
    for name, one, other in (("old", before, after), ("new", after, before)):
        alone = [task_name(task) for task in one.rows if task not in other.rows]
        if alone:
            yield f"Only the {name} run was asked {', '.join(alone)}: not compared."
    lengths = {
        (len(before.rows[task]), len(after.rows[task]), len(old))
        for task, old, _ in _common(before, after)
    }
    for then, now, both in sorted(lengths):
        if then != now:
            yield (
                f"Items of a task: {then} in the old run, {now} in the new one; compared on the "
                f"first {both}."
            )
    lost = sum(
        _answered(then) != _answered(now)
        for _, old, new in _common(before, after)
        for then, now in zip(old, new, strict=True)
    )
    if lost:
        yield f"Items that only one of the runs answered: {lost}."
    if before.info.prompt.sha256 != after.info.prompt.sha256:
        yield f"Prompts differ: {before.info.prompt.name}, then {after.info.prompt.name}."


def _common(before: ScoredRun, after: ScoredRun) -> Iterator[tuple[str, list[Row], list[Row]]]:
    """Task and rows of the items that both runs were asked."""
    for task, old in before.rows.items():
        new = after.rows.get(task, [])
        both = min(len(old), len(new))
        if both:
            yield task, old[:both], new[:both]
