"""Comparison of a new run with an old one: is any score significantly worse?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from numbench.errors import BadInput
from numbench.journal import find_runs
from numbench.records import ProtocolName
from numbench.reporting.comparison_tables import format_difference, format_p_value, task_name
from numbench.reporting.comparisons import (
    OVERALL,
    WORSE,
    Contrast,
    compare_runs,
    detectable_differences,
    excludes_regression,
    too_few_items,
)
from numbench.reporting.entries import dataset_label
from numbench.reporting.table_model import LOG_SMAPE, format_value
from numbench.scoring import ScoredRun, score_dataset_run
from numbench.scoring.completeness import MIN_ANSWERED_PERCENT, completeness
from numbench.scoring.scored_run import item_count, item_groups
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import NO_TRANSFORM


class Regression(NamedTuple):
    """Comparison of a new run with an old one; the new run is the first in each contrast.

    notes: facts about what was compared. failures: why the new run does not pass, empty if it
    does. margin: the largest acceptable regression in points, None if differences were tested.
    """

    contrasts: tuple[Contrast, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    margin: float | None = None


def find_regression(
    old: Path,
    new: Path,
    protocol: ProtocolName,
    fail_below: float | None,
    partial: bool,
    margin: float | None = None,
) -> Regression:
    """Compare two runs task by task, and their means of tasks if both include all tasks.

    A task fails if the new run is significantly worse, and by more than `fail_below` points if
    this is given. With `margin`, a task fails instead unless a regression of more than `margin`
    points is excluded. Tasks and answers that only the old run has also fail; with `partial` they
    are notes, unless both runs answered no common item. Raises BadInput if the runs use different
    datasets or have no task in common, if a number of points is out of range, or for `fail_below`
    together with `margin`.
    """
    _check_points(fail_below, margin)
    old_run, new_run = (score_dataset_run(run_folder(path), protocol) for path in (old, new))
    if old_run.dataset.manifest.sha256 != new_run.dataset.manifest.sha256:
        raise BadInput(
            f"{old} uses dataset {dataset_label(old_run)}, {new} uses dataset "
            f"{dataset_label(new_run)}: only runs on the same dataset can be compared"
        )
    if not set(old_run.rows) & set(new_run.rows):
        raise BadInput(f"{old} and {new} have no task in common")
    if not any(any(_answered(old_run, task).values()) for task in old_run.rows):
        raise BadInput(f"{old}: no answered items to compare with")
    contrasts = tuple(
        contrast
        for contrast in compare_runs([new_run, old_run]).contrasts
        if contrast.table == LOG_SMAPE.name
        and (contrast.task == OVERALL or contrast.task in old_run.rows.keys() & new_run.rows.keys())
    )
    if margin is None:
        failures = [_regression_message(c) for c in contrasts if _is_regression(c, fail_below)]
    else:
        failures = [
            _not_excluded_message(c, margin)
            for c in contrasts
            if c.result and not excludes_regression(c, margin)
        ]
        untested = [task_name(c.task) for c in contrasts if c.result is None]
        if untested and not partial:
            failures.append(f"no common answers, so nothing is excluded: {', '.join(untested)}")
    notes = [*_detectable_difference_notes(contrasts), *_notes(old_run, new_run)]
    gaps = [*_missing_tasks(old_run, new_run), *_missing_answers(old_run, new_run)]
    if partial and _share_answers(old_run, new_run):
        notes += [f"Partial: {gap}." for gap in gaps]
    else:
        failures += gaps
    return Regression(contrasts, tuple(notes), tuple(failures), margin)


def _check_points(fail_below: float | None, margin: float | None) -> None:
    # The comparisons are also false for NaN.
    if fail_below is not None and not fail_below >= 0:
        raise BadInput(f"--fail-below {fail_below}: give points, 0 or more")
    if margin is not None and not 0 < margin < 100:
        raise BadInput(f"--margin {margin}: give points between 0 and 100")
    if fail_below is not None and margin is not None:
        raise BadInput(
            "--margin and --fail-below are different tests: --margin fails unless a larger "
            "regression is excluded, --fail-below only if one is shown; use one of them"
        )


def run_folder(path: Path) -> Path:
    """Return the only run folder at or below `path`. Raises BadInput if there are several."""
    folders = find_runs([path])
    if len(folders) > 1:
        raise BadInput(f"{path}: contains {len(folders)} runs; name one of them, e.g. {folders[0]}")
    return folders[0]


def _answered(run: ScoredRun, task: str) -> dict[str, bool]:
    """Return for each item of a task, by id, whether any of its samples has an answer."""
    return {
        samples[0].item.id: any(row.is_answered for row in samples)
        for samples in item_groups(run.rows[task])
    }


def _is_regression(contrast: Contrast, fail_below: float | None) -> bool:
    if contrast.result is None or contrast.verdict != WORSE:
        return False
    return fail_below is None or contrast.result.difference < -fail_below


def _not_excluded_message(contrast: Contrast, margin: float) -> str:
    assert contrast.result
    return (
        f"{task_name(contrast.task)}: a regression of more than {margin:g} points is not excluded "
        f"({format_value(contrast.result.difference, 1)}, with 95 % confidence at least "
        f"{format_value(contrast.result.at_least, 1)} points, {contrast.result.n} items)"
    )


def _regression_message(contrast: Contrast) -> str:
    assert contrast.result and contrast.means
    new, old = (format_value(mean, 1) for mean in contrast.means)
    return (
        f"{task_name(contrast.task)}: {old} -> {new} ({format_difference(contrast)} points, "
        f"p {format_p_value(contrast.p_tasks)}, {contrast.result.n} items)"
    )


def _detectable_difference_notes(contrasts: Iterable[Contrast]) -> Iterator[str]:
    contrasts = list(contrasts)
    known = [(values.most, task) for task, values in detectable_differences(contrasts).items()]
    if known:
        (least, least_task), (most, most_task) = min(known), max(known)
        yield (
            "Minimum detectable difference (80 % power, before Holm's correction): from "
            f"{least:.1f} ({task_name(least_task)}) to {most:.1f} ({task_name(most_task)}) points."
        )
    few = [task_name(task) for task in too_few_items(contrasts)]
    if few:
        yield f"Too few items to detect any difference: {', '.join(few)}."


def _share_answers(old_run: ScoredRun, new_run: ScoredRun) -> bool:
    return any(
        old_item and new_item
        for _, old_items, new_items in _common_items(old_run, new_run)
        for old_item, new_item in zip(old_items, new_items, strict=True)
    )


def _missing_tasks(old_run: ScoredRun, new_run: ScoredRun) -> Iterator[str]:
    missing = [task_name(task) for task in old_run.rows if task not in new_run.rows]
    if missing:
        total = len(old_run.rows)
        what = missing[0] if len(missing) == 1 else f"{len(missing)} of {total} tasks"
        yield f"{what} missing from the new run"


def _missing_answers(old_run: ScoredRun, new_run: ScoredRun) -> Iterator[str]:
    """Check the tasks of both runs; an item that the new run does not include has no answer."""
    answered_before = {
        task: [item_id for item_id, answered in _answered(old_run, task).items() if answered]
        for task in old_run.rows
        if task in new_run.rows
    }
    known = completeness(new_run, answered_before)
    if tasks := known.incomplete_tasks:
        answered, total = map(sum, zip(*(known.by_task[task] for task in tasks), strict=True))
        where = task_name(tasks[0]) if len(tasks) == 1 else f"{len(tasks)} tasks"
        samples = "items" if new_run.info.samples == 1 else "samples of items"
        yield (
            f"{answered} of {total} previously answered {samples} of {where} answered again (at "
            f"least {MIN_ANSWERED_PERCENT}% required per task)"
        )


def _notes(old_run: ScoredRun, new_run: ScoredRun) -> Iterator[str]:
    for name, run, other in (("old", old_run, new_run), ("new", new_run, old_run)):
        tasks = [task_name(task) for task in run.rows if task not in other.rows]
        if tasks:
            yield f"Only the {name} run includes {', '.join(tasks)}: not compared."
    lengths = {
        (item_count(old_run, task), item_count(new_run, task), len(old_items))
        for task, old_items, _ in _common_items(old_run, new_run)
    }
    for old_length, new_length, compared in sorted(lengths):
        if not old_length == new_length == compared:
            yield (
                f"Items per task: {old_length} (old), {new_length} (new); compared: the {compared} "
                "that both include."
            )
    old_samples, new_samples = old_run.info.samples, new_run.info.samples
    if old_samples != new_samples:
        yield (
            f"Samples per item: {old_samples} (old), {new_samples} (new); compared: their means "
            "per item."
        )
    answered_once = sum(
        old_item != new_item
        for _, old_items, new_items in _common_items(old_run, new_run)
        for old_item, new_item in zip(old_items, new_items, strict=True)
    )
    if answered_once:
        yield f"Items answered by only one run: {answered_once}."
    if changed_prompts(old_run.info.prompt, new_run.info.prompt):
        old_prompt, new_prompt = old_run.info.prompt.name, new_run.info.prompt.name
        yield f"Prompts differ: {old_prompt} (old), {new_prompt} (new)."
    old_form, new_form = (run.info.transform or NO_TRANSFORM for run in (old_run, new_run))
    if old_form != new_form:
        yield f"Transformations differ: {old_form} (old), {new_form} (new)."


def _common_items(
    old_run: ScoredRun, new_run: ScoredRun
) -> Iterator[tuple[str, list[bool], list[bool]]]:
    """Yield each task of both runs, with whether each run answered the items that both include."""
    for task in old_run.rows:
        if task in new_run.rows:
            old_items, new_items = _answered(old_run, task), _answered(new_run, task)
            if common := [item_id for item_id in old_items if item_id in new_items]:
                yield task, [old_items[i] for i in common], [new_items[i] for i in common]
