"""Comparison of a new run with an old one: is a score significantly worse?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from numbench.errors import BadInput
from numbench.journal.run_folder import read_run
from numbench.records import ProtocolName
from numbench.reporting.baseline import AskedItems, read_baseline, side_of
from numbench.reporting.comparisons import ALL, PairDifference, compare_values, task_name
from numbench.reporting.regression import (
    ComparedTask,
    Regression,
    excludes,
    only_in,
    run_folder,
    setting_differences,
    with_gaps,
    worse_tasks,
)
from numbench.reporting.size_regression import compare_sizes
from numbench.reporting.values import RunValues
from numbench.scoring import ScoredRun, score_dataset_run
from numbench.scoring.completeness import MIN_ANSWERED_PERCENT, completeness
from numbench.stats.multiple_testing import holm

MIN_COMMON = 6
"""Common questions of a task; with fewer, no difference is significant."""


def compare(
    old: Path,
    new: Path,
    protocol: ProtocolName = "exact",
    margin: float | None = None,
    partial: bool = False,
    on: Sequence[str] | None = None,
) -> Regression:
    """Compare run `new` with run `old`, which may be the file of a baseline.

    The comparison fails if the mean over the common tasks is significantly worse, or with `on`, if
    one of these tasks is, after Holm's correction over them. With `margin`, it fails instead unless
    a regression of more than `margin` points is excluded (one-sided test at the 5% level). Tasks
    and answers that only the old run has also fail; with `partial` they are notes. Without enough
    common answers to find any drop, it fails. Measurements of problem sizes are compared by h50,
    over all tasks or those of `on`.

    Raises BadInput for runs that cannot be compared, and for a margin that is out of range.
    """
    # The comparison is also false for NaN.
    if margin is not None and not 0 < margin < 100:
        raise BadInput(f"--margin {margin:g}: give points between 0 and 100")
    old, new = old if old.is_file() else run_folder(old), run_folder(new)
    if old.is_file():
        return compare_scores(old, new, protocol, margin, partial, on)
    runs = {"old": read_run(old), "new": read_run(new)}
    sizes = [run.info.horizon is not None for run in runs.values()]
    if all(sizes) and margin is not None:
        raise BadInput("--margin is in points of a score; horizon runs have none")
    if any(sizes) and not all(sizes):
        horizon, other = (old, new) if sizes[0] else (new, old)
        raise BadInput(
            f"{horizon} is a horizon run and {other} is not: compare two of the same kind"
        )
    if all(sizes):
        result = compare_sizes(runs["old"], runs["new"], partial, on)
    else:
        result = compare_scores(old, new, protocol, margin, partial, on)
    served = [f"The {name} run: {w}." for name, run in runs.items() for w in run.served.warnings]
    return result._replace(notes=(*served, *result.notes))


def compare_scores(
    old: Path,
    new: Path,
    protocol: ProtocolName,
    margin: float | None,
    partial: bool,
    on: Sequence[str] | None,
) -> Regression:
    new_run = score_dataset_run(new, protocol)
    after = side_of(new_run)
    if old.is_file():
        before = read_baseline(old, protocol, new_run.dataset)
    else:
        before = side_of(score_dataset_run(old, protocol))
    if before.sha256 != after.sha256:
        raise BadInput(
            f"{old} uses dataset {before.run.dataset}, {new} uses dataset {after.run.dataset}: "
            "only runs on the same dataset can be compared"
        )
    for task in on or ():
        if missing := [side.run.path for side in (before, after) if task not in side.items]:
            raise BadInput(f"--on {task}: {missing[0]} has no such task")
    old_items, new_items = before.items, after.items
    if on:
        old_items, new_items = ({t: known[t] for t in on} for known in (old_items, new_items))
    both = [task for task in old_items if task in new_items]
    if not both:
        raise BadInput(f"{old} and {new} have no task in common")
    if not any(items.answered for items in old_items.values()):
        raise BadInput(f"{old}: no answered items to compare with")
    common = max(len(old_items[task].asked & new_items[task].asked) for task in both)
    if common < MIN_COMMON and not partial:
        raise BadInput(
            f"{old} and {new} have at most {common} common questions per task: a "
            f"comparison needs {MIN_COMMON} (--partial compares them anyway)"
        )
    chosen = [
        RunValues(side.sha256, {task: side.values.tasks[task] for task in both})
        for side in (after, before)
    ]
    known = compare_values(chosen, one_sided=margin is not None, decisive=len(on or [ALL]))
    tasks = _decisive_first(known.differences, on)
    decisive = [task for task in tasks if task.decides]
    failures = list(worse_tasks(decisive) if margin is None else _not_excluded(decisive, margin))
    few = [task_name(task.task) for task in decisive if task.detectable is None]
    if margin is None and (few or not decisive):
        failures.append(f"too few common answers to find any drop: {', '.join(few) or 'none'}")
    gaps = list(_gaps(old_items, new_run))
    untested = [task_name(task) for task in both if task not in {task.task for task in tasks}]
    if untested and margin is not None:
        gaps.append(f"no common answers, so nothing is excluded: {', '.join(untested)}")
    notes = [
        *setting_differences(before.info, after.info),
        *_detectable(decisive, margin),
        *_notes(old_items, new_items, tasks),
    ]
    # Without any common answer, there is nothing to compare.
    has_common = any(old_items[task].answered & new_items[task].answered for task in both)
    runs = before.run, after.run
    result = Regression("scores", *runs, tasks, tuple(notes), tuple(failures), margin)
    return with_gaps(result, gaps, partial and has_common)


def _decisive_first(
    differences: Sequence[PairDifference], on: Sequence[str] | None
) -> tuple[ComparedTask, ...]:
    """Return the results that decide, then the others, with Holm's correction over the tasks."""
    overall = [one._replace(p_adjusted=one.p) for one in differences if one.task == ALL]
    tasks = [one for one in differences if one.task != ALL]
    p_values = holm([one.p for one in tasks])
    tasks = [one._replace(p_adjusted=p) for one, p in zip(tasks, p_values, strict=True)]
    # A single task is its own mean.
    if on or not overall:
        return tuple(_compared_task(one, True) for one in tasks)
    of_tasks = (_compared_task(one, False) for one in tasks)
    return (_compared_task(overall[0], True), *of_tasks)


def _not_excluded(tasks: Sequence[ComparedTask], margin: float) -> Iterator[str]:
    if failed := [task for task in tasks if not excludes(task, margin)]:
        listed = ", ".join(f"{task_name(one.task)} {one.at_least:+.1f}" for one in failed)
        yield (
            f"a regression of more than {margin:g} points is not excluded (with 95% confidence, at "
            f"least: {listed})"
        )


def _compared_task(one: PairDifference, decides: bool) -> ComparedTask:
    new, old = one.means
    change = f"{one.difference:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"
    return ComparedTask(
        one.task, old, new, one.difference, one.low, one.high, one.p_adjusted, one.verdict,
        (f"{old:.1f}", f"{new:.1f}", change), one.items, one.at_least,
        one.detectable if decides else None, decides,
    )  # fmt: skip


def _detectable(tasks: Sequence[ComparedTask], margin: float | None) -> Iterator[str]:
    """Describe which drop, or which margin, the questions can show."""
    if margin is not None:
        bounds = [(task.at_least, task.task) for task in tasks if task.at_least is not None]
        if bounds:
            least, worst = min(bounds)
            yield (
                f"Largest regression that is not excluded: {max(0.0, -least):.1f} points "
                f"({task_name(worst)})."
            )
        return
    if known := [(task.detectable, task.task) for task in tasks if task.detectable is not None]:
        listed = ", ".join(f"{drop:.1f} points ({task_name(task)})" for drop, task in known)
        yield f"Smallest true drop that fails this comparison with a probability of 80%: {listed}."


def _gaps(old: Mapping[str, AskedItems], new_run: ScoredRun) -> Iterator[str]:
    """Yield which tasks and answers only the old run has."""
    if missing := [task_name(task) for task in old if task not in new_run.rows]:
        what = missing[0] if len(missing) == 1 else f"{len(missing)} of {len(old)} tasks"
        yield f"{what} missing from the new run"
    # An item that the new run does not include has no answer.
    before = {task: items.answered for task, items in old.items() if task in new_run.rows}
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
    old: Mapping[str, AskedItems], new: Mapping[str, AskedItems], tasks: Sequence[ComparedTask]
) -> Iterator[str]:
    """Yield what was not compared, and which tasks are worse that do not decide."""
    if worse := [task.task for task in tasks if task.verdict == "worse" and not task.decides]:
        yield (
            f"Significantly worse, though it does not decide: {', '.join(map(task_name, worse))} "
            f"(--on {','.join(worse)} lets it)."
        )
    yield from only_in("old", [task for task in old if task not in new])
    yield from only_in("new", [task for task in new if task not in old])
    pairs = [
        (old[task], new[task], old[task].asked & new[task].asked) for task in old if task in new
    ]
    lengths = {
        (len(one.asked), len(two.asked), len(common)) for one, two, common in pairs if common
    }
    for first, second, compared in sorted(lengths):
        if not first == second == compared:
            what = f"compared: the {compared} that both include"
            yield f"Items per task: {first} (old), {second} (new); {what}."
    if once := sum(len((one.answered ^ two.answered) & common) for one, two, common in pairs):
        yield f"Items answered by only one run: {once}."
