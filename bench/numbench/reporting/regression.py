"""Comparison of a new run with an old one: is a score or a problem size significantly worse?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from numbench.errors import BadInput
from numbench.horizon.comparison import HorizonShift, compare_horizons
from numbench.horizon.estimate import TaskHorizon
from numbench.journal import find_runs, read_info
from numbench.records import ProtocolName
from numbench.reporting.comparisons import (
    ALL,
    NOT_SIGNIFICANT,
    PairDifference,
    Verdict,
    compare_runs,
    task_name,
)
from numbench.reporting.names import dataset_label
from numbench.reporting.values import run_values
from numbench.scoring import ScoredRun, score_dataset_run
from numbench.scoring.completeness import MIN_ANSWERED_PERCENT, completeness
from numbench.scoring.horizon_outcomes import read_horizons
from numbench.scoring.scored_run import item_count, item_groups
from numbench.stats.intervals import ALPHA, variance_of_mean
from numbench.stats.multiple_testing import holm
from numbench.stats.planning import POWER, non_inferiority_power
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import NO_TRANSFORM


class ComparedTask(NamedTuple):
    """The new run compared with the old one on one task, or on the mean over tasks (`ALL`).

    old, new: scores in percent, or h50 in the unit of the task. change: new − old in points, or
    new / old; low, high: its 95% interval. p: after Holm's correction over the tasks. items: that
    both runs answered, None for problem sizes. at_least: the one-sided 95% bound of a change in
    points. texts: of old, new and the change.
    """

    task: str
    old: float
    new: float
    change: float
    low: float
    high: float
    p: float
    verdict: Verdict
    texts: tuple[str, str, str]
    items: int | None = None
    at_least: float | None = None


class Regression(NamedTuple):
    """Comparison of a new run with an old one.

    measure: what was compared. notes: facts about it. failures: why the new run does not pass,
    empty if it does. margin: the largest acceptable regression in points, None if differences were
    tested.
    """

    measure: Literal["scores", "problem sizes"]
    tasks: tuple[ComparedTask, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    margin: float | None = None


class MarginPlan(NamedTuple):
    """What a comparison with an old run on the same questions can exclude.

    chance: that a new run of an equal model with unrelated errors passes `margin` in all tasks,
    0 to 1. sufficient: the least margin that it passes with a chance of 80%. by_task: task → the
    least margin that it passes in this task with a chance of 80%.
    """

    margin: float
    chance: float
    sufficient: float
    by_task: dict[str, float]


def compare(
    old: Path,
    new: Path,
    protocol: ProtocolName = "exact",
    margin: float | None = None,
    partial: bool = False,
) -> Regression:
    """Compare run `new` with run `old`, task by task and by the mean over tasks.

    A task fails if the new run is significantly worse. With `margin`, a task fails instead unless
    a regression of more than `margin` points is excluded (one-sided test at the 5% level). Tasks
    and answers that only the old run has also fail; with `partial` they are notes, unless no item
    was answered by both. Measurements of problem sizes are compared by h50.

    Raises BadInput for runs that cannot be compared, and for a margin that is out of range.
    """
    _check_margin(margin)
    old, new = run_folder(old), run_folder(new)
    sizes = [read_info(folder).horizon is not None for folder in (old, new)]
    if all(sizes):
        if margin is not None:
            raise BadInput("--margin is in points of a score; horizon runs have none")
        return _compare_sizes(old, new, partial)
    if any(sizes):
        horizon, other = (old, new) if sizes[0] else (new, old)
        raise BadInput(
            f"{horizon} is a horizon run and {other} is not: compare two of the same kind"
        )
    return _compare_scores(old, new, protocol, margin, partial)


def plan_margin(old: Path, margin: float, protocol: ProtocolName = "exact") -> MarginPlan:
    """Return which margin a comparison of a new run with `old` can exclude.

    The new run has the same questions, scores and spread, and unrelated errors: if the same
    questions are incorrect again, less is needed. Raises BadInput for a run without answers or a
    margin that is out of range.
    """
    _check_margin(margin)
    errors: dict[str, tuple[float, int]] = {}
    for task, values in run_values(score_dataset_run(run_folder(old), protocol)).tasks.items():
        stratum = values.stratum(values.score)
        if n := int(stratum.n[0]):
            errors[task] = (2 * float(variance_of_mean([stratum], 100.0**2)[0]), n)
    if not errors:
        raise BadInput(f"{old}: no answered items to compare with")

    def chance(points: float, tasks: Sequence[str]) -> float:
        return math.prod(non_inferiority_power(points, *errors[task]) for task in tasks)

    def sufficient(tasks: Sequence[str]) -> float:
        steps = np.arange(1, 1001) / 10
        return next((float(m) for m in steps if chance(float(m), tasks) >= POWER), 100.0)

    every = list(errors)
    by_task = {task: sufficient([task]) for task in every}
    return MarginPlan(margin, chance(margin, every), sufficient(every), by_task)


def run_folder(path: Path) -> Path:
    """Return the only run folder at or below `path`. Raises BadInput if there are several."""
    folders = find_runs([path])
    if len(folders) > 1:
        raise BadInput(f"{path}: contains {len(folders)} runs; name one of them, e.g. {folders[0]}")
    return folders[0]


def _check_margin(margin: float | None) -> None:
    # The comparison is also false for NaN.
    if margin is not None and not 0 < margin < 100:
        raise BadInput(f"--margin {margin:g}: give points between 0 and 100")


def excludes(task: ComparedTask, margin: float) -> bool:
    """Return whether the new run is not worse by `margin` points or more."""
    return task.at_least is not None and task.at_least > -margin


def _compare_scores(
    old: Path, new: Path, protocol: ProtocolName, margin: float | None, partial: bool
) -> Regression:
    old_run, new_run = (score_dataset_run(path, protocol) for path in (old, new))
    if old_run.dataset.manifest.sha256 != new_run.dataset.manifest.sha256:
        raise BadInput(
            f"{old} uses dataset {dataset_label(old_run)}, {new} uses dataset "
            f"{dataset_label(new_run)}: only runs on the same dataset can be compared"
        )
    both = {
        task: _answered_by(old_run, new_run, task) for task in old_run.rows if task in new_run.rows
    }
    if not both:
        raise BadInput(f"{old} and {new} have no task in common")
    if not any(row.is_answered for rows in old_run.rows.values() for row in rows):
        raise BadInput(f"{old}: no answered items to compare with")
    comparisons = compare_runs([new_run, old_run], one_sided=margin is not None)
    differences = [one for one in comparisons.differences if one.metric == "score"]
    tasks = tuple(map(_compared_task, differences))
    if margin is None:
        failures = [_worse(task) for task in tasks if task.verdict == "worse"]
    else:
        failures = [_not_excluded(task, margin) for task in tasks if not excludes(task, margin)]
        compared = {task.task for task in tasks}
        untested = [task_name(task) for task in both if task not in compared]
        if untested and not partial:
            failures.append(f"no common answers, so nothing is excluded: {', '.join(untested)}")
    notes = [*_detectable(differences, margin), *_notes(old_run, new_run, both)]
    gaps = list(_gaps(old_run, new_run, both))
    if partial and any(all(pair) for pairs in both.values() for pair in pairs):
        notes += [f"Partial: {gap}." for gap in gaps]
    else:
        failures += gaps
    return Regression("scores", tasks, tuple(notes), tuple(failures), margin)


def _compared_task(one: PairDifference) -> ComparedTask:
    new, old = one.means
    change = f"{one.difference:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"
    return ComparedTask(
        one.task, old, new, one.difference, one.low, one.high, one.p_adjusted, one.verdict,
        (f"{old:.1f}", f"{new:.1f}", change), one.items, one.at_least,
    )  # fmt: skip


def _worse(task: ComparedTask) -> str:
    old, new, change = task.texts
    points, items = ("", "") if task.items is None else (" points", f", {task.items} items")
    return f"{task_name(task.task)}: {old} -> {new} ({change}{points}, p {task.p:.2g}{items})"


def _not_excluded(task: ComparedTask, margin: float) -> str:
    return (
        f"{task_name(task.task)}: a regression of more than {margin:g} points is not excluded "
        f"({task.change:+.1f}, with 95% confidence at least {task.at_least:+.1f} points, "
        f"{task.items} items)"
    )


def _detectable(differences: Sequence[PairDifference], margin: float | None) -> Iterator[str]:
    """Describe which differences, or which margin, these items can show."""
    if margin is not None:
        if worst := min(differences, key=lambda one: one.at_least, default=None):
            yield (
                f"Largest regression that is not excluded: {max(0.0, -worst.at_least):.1f} points "
                f"({task_name(worst.task)}). A larger --margin passes."
            )
        return
    known = [
        (one.detectable, task_name(one.task)) for one in differences if one.detectable is not None
    ]
    if known:
        (least, least_task), (most, most_task) = min(known), max(known)
        yield (
            "Minimum detectable difference (80% power, before Holm's correction): from "
            f"{least:.1f} ({least_task}) to {most:.1f} ({most_task}) points."
        )
    few = [one.task for one in differences if one.task != ALL and one.detectable is None]
    if few:
        yield f"Too few items to detect any difference: {', '.join(map(task_name, few))}."


def _answered(run: ScoredRun, task: str) -> dict[str, bool]:
    """Return for each item of a task, by id, whether any of its samples has an answer."""
    return {
        samples[0].item.id: any(row.is_answered for row in samples)
        for samples in item_groups(run.rows[task])
    }


def _answered_by(old_run: ScoredRun, new_run: ScoredRun, task: str) -> list[tuple[bool, bool]]:
    """Return for each item of both runs whether the old and the new one answered it."""
    old_items, new_items = _answered(old_run, task), _answered(new_run, task)
    return [(old_items[key], new_items[key]) for key in old_items if key in new_items]


def _gaps(
    old_run: ScoredRun, new_run: ScoredRun, both: dict[str, list[tuple[bool, bool]]]
) -> Iterator[str]:
    """Yield which tasks and answers only the old run has."""
    if missing := [task_name(task) for task in old_run.rows if task not in both]:
        every = len(old_run.rows)
        what = missing[0] if len(missing) == 1 else f"{len(missing)} of {every} tasks"
        yield f"{what} missing from the new run"
    # An item that the new run does not include has no answer.
    before = {
        task: [item_id for item_id, answered in _answered(old_run, task).items() if answered]
        for task in both
    }
    known = completeness(new_run, before)
    if tasks := known.incomplete_tasks:
        answered, total = map(sum, zip(*(known.by_task[task] for task in tasks), strict=True))
        where = task_name(tasks[0]) if len(tasks) == 1 else f"{len(tasks)} tasks"
        samples = "items" if new_run.info.samples == 1 else "samples of items"
        yield (
            f"{answered} of {total} previously answered {samples} of {where} answered again (at "
            f"least {MIN_ANSWERED_PERCENT}% required per task)"
        )


def _notes(
    old_run: ScoredRun, new_run: ScoredRun, both: dict[str, list[tuple[bool, bool]]]
) -> Iterator[str]:
    """Yield in what the runs differ, beside their answers."""
    for name, run in (("old", old_run), ("new", new_run)):
        yield from _only_in(name, [task for task in run.rows if task not in both])
    lengths = {
        (item_count(old_run, task), item_count(new_run, task), len(pairs))
        for task, pairs in both.items()
        if pairs
    }
    for first, second, compared in sorted(lengths):
        if not first == second == compared:
            what = f"compared: the {compared} that both include"
            yield f"Items per task: {first} (old), {second} (new); {what}."
    if once := sum(before != after for pairs in both.values() for before, after in pairs):
        yield f"Items answered by only one run: {once}."
    old_info, new_info = old_run.info, new_run.info
    differing = {
        "Samples per item": (old_info.samples, new_info.samples),
        "Transformations": (old_info.transform or NO_TRANSFORM, new_info.transform or NO_TRANSFORM),
    }
    if changed_prompts(old_info.prompt, new_info.prompt):
        differing["Prompts"] = (old_info.prompt.name, new_info.prompt.name)
    for what, (before, after) in differing.items():
        if before != after or what == "Prompts":
            yield f"{what} differ: {before} (old), {after} (new)."


def _only_in(name: str, tasks: Sequence[str]) -> Iterator[str]:
    if tasks:
        yield f"Only the {name} run includes {', '.join(map(task_name, tasks))}: not compared."


def _compare_sizes(old: Path, new: Path, partial: bool) -> Regression:
    """Compare two measurements of problem sizes by h50; see `compare`."""
    before, after = read_horizons(old), read_horizons(new)
    common = [task for task in before if task in after]
    if not common:
        raise BadInput(f"{old} and {new} have no task in common")
    shifts = [compare_horizons(before[task], after[task]) for task in common]
    p_values = holm([shift.p for shift in shifts])
    tasks = tuple(
        _compared_size(task, before[task], after[task], shift, p)
        for task, shift, p in zip(common, shifts, p_values, strict=True)
    )
    failures = [_worse(task) for task in tasks if task.verdict == "worse"]
    notes = [*_fits("old", before, common), *_fits("new", after, common)]
    limited = [
        f"{task_name(task)} {shift.largest:,}"
        for task, shift in zip(common, shifts, strict=True)
        if before[task].largest != after[task].largest
    ]
    if limited:
        which = f"compared up to the smaller one: {', '.join(limited)}"
        notes.append(f"The runs end at different sizes; {which}.")
    notes += _only_in("new", [task for task in after if task not in before])
    if missing := [task_name(task) for task in before if task not in after]:
        gap = f"{', '.join(missing)} missing from the new run"
        (notes if partial else failures).append(f"Partial: {gap}." if partial else gap)
    return Regression("problem sizes", tasks, tuple(notes), tuple(failures))


def _compared_size(
    task: str, old: TaskHorizon, new: TaskHorizon, shift: HorizonShift, p: float
) -> ComparedTask:
    verdict: Verdict = NOT_SIGNIFICANT
    if p <= ALPHA:
        verdict = "better" if shift.larger > 0.5 else "worse"
    before, after = old.h50.value, new.h50.value
    texts = (old.text(before), new.text(after), _ratio(old, new, shift))
    return ComparedTask(task, before, after, *shift.ratio, p, verdict, texts)


def _ratio(old: TaskHorizon, new: TaskHorizon, shift: HorizonShift) -> str:
    """Format new over old h50; as a bound where a horizon is beyond the sizes.

    Empty if both are beyond, so that the ratio is not known.
    """
    before, after = old.h50.value, new.h50.value
    is_at_least = before < shift.smallest or after >= shift.largest
    is_at_most = after < shift.smallest or before >= shift.largest
    if is_at_least and is_at_most:
        return ""
    sign = "≥ " if is_at_least else "≤ " if is_at_most else ""
    ratio = shift.ratio
    return f"{sign}× {ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _fits(name: str, horizons: dict[str, TaskHorizon], tasks: Sequence[str]) -> Iterator[str]:
    if doubtful := [task_name(t) for t in tasks if not horizons[t].fits or horizons[t].is_doubtful]:
        yield (
            f"A logistic curve may not describe the answers of the {name} run to "
            f"{', '.join(doubtful)}: the interval of the ratio may be too narrow."
        )
    if unfinished := [task_name(t) for t in tasks if horizons[t].stop is None]:
        yield f"Unfinished in the {name} run: {', '.join(unfinished)}."
