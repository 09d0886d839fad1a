"""Comparison of a new run with an old one: is a score or a problem size significantly worse?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from numbench.errors import BadInput
from numbench.horizon.estimate import HorizonShift, TaskHorizon, compare_horizons
from numbench.journal import find_runs, read_run
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
from numbench.scoring import ScoredRun, score_dataset_run
from numbench.scoring.completeness import MIN_ANSWERED_PERCENT, completeness
from numbench.scoring.horizon_outcomes import read_horizons
from numbench.stats.intervals import ALPHA
from numbench.stats.multiple_testing import holm
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import NO_TRANSFORM

MIN_COMMON = 6
"""Common questions of a task; with fewer, no difference is significant."""

_SETTINGS = ("temperature", "max_tokens", "structured", "few_shot", "params")
"""Settings of a run whose differences are noted; others differ between models anyway."""


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
    # The comparison is also false for NaN.
    if margin is not None and not 0 < margin < 100:
        raise BadInput(f"--margin {margin:g}: give points between 0 and 100")
    old, new = run_folder(old), run_folder(new)
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
        result = _compare_sizes(old, new, partial)
    else:
        result = _compare_scores(old, new, protocol, margin, partial)
    served = [f"The {name} run: {w}." for name, run in runs.items() for w in run.served.warnings]
    return result._replace(notes=(*served, *result.notes))


def run_folder(path: Path) -> Path:
    """Return the only run folder at or below `path`. Raises BadInput if there are several."""
    folders = find_runs([path])
    if len(folders) > 1:
        raise BadInput(f"{path}: contains {len(folders)} runs; name one of them, e.g. {folders[0]}")
    return folders[0]


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
    old_items, new_items = _items(old_run), _items(new_run)
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
    comparisons = compare_runs([new_run, old_run], one_sided=margin is not None)
    differences = comparisons.differences
    tasks = tuple(map(_compared_task, differences))
    failures = list(_worse(tasks) if margin is None else _not_excluded(tasks, margin))
    gaps = list(_gaps(old_items, new_run))
    untested = [task_name(task) for task in both if task not in {task.task for task in tasks}]
    if untested and margin is not None:
        gaps.append(f"no common answers, so nothing is excluded: {', '.join(untested)}")
    notes = [*_detectable(differences, margin), *_notes(old_run, new_run, old_items, new_items)]
    # Without any common answer, there is nothing to compare.
    has_common = any(old_items[task].answered & new_items[task].answered for task in both)
    return _regression("scores", tasks, notes, failures, gaps, partial and has_common, margin)


def _regression(
    measure: Literal["scores", "problem sizes"],
    tasks: tuple[ComparedTask, ...],
    notes: Sequence[str],
    failures: Sequence[str],
    gaps: Sequence[str],
    partial: bool,
    margin: float | None = None,
) -> Regression:
    """Return a comparison in which gaps, what only the old run has, are notes or failures."""
    if partial:
        notes = [*notes, *(f"Partial: {gap}." for gap in gaps)]
    elif gaps:
        way_out = "--partial compares what both runs answered"
        failures = [*failures, *gaps[:-1], f"{gaps[-1]}; {way_out}"]
    return Regression(measure, tasks, tuple(notes), tuple(failures), margin)


class _Items(NamedTuple):
    """The ids of a task's items in a run, and of those that have an answer to any sample."""

    asked: set[str]
    answered: set[str]


def _items(run: ScoredRun) -> dict[str, _Items]:
    return {
        task: _Items(
            {row.item.id for row in rows}, {row.item.id for row in rows if row.is_answered}
        )
        for task, rows in run.rows.items()
    }


def _compared_task(one: PairDifference) -> ComparedTask:
    new, old = one.means
    change = f"{one.difference:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"
    return ComparedTask(
        one.task, old, new, one.difference, one.low, one.high, one.p_adjusted, one.verdict,
        (f"{old:.1f}", f"{new:.1f}", change), one.items, one.at_least,
    )  # fmt: skip


def _worse(tasks: Sequence[ComparedTask]) -> Iterator[str]:
    for task in tasks:
        if task.verdict == "worse":
            old, new, change = task.texts
            points, items = (" points", f", {task.items} items") if task.items else ("", "")
            about = f"{change}{points}, p {task.p:.2g}{items}"
            yield f"{task_name(task.task)}: {old} -> {new} ({about})"


def _not_excluded(tasks: Sequence[ComparedTask], margin: float) -> Iterator[str]:
    if failed := [task for task in tasks if not excludes(task, margin)]:
        listed = ", ".join(f"{task_name(one.task)} {one.at_least:+.1f}" for one in failed)
        yield (
            f"a regression of more than {margin:g} points is not excluded (with 95% confidence, at "
            f"least: {listed})"
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
            "Minimum detectable difference (80% power, before Holm's correction): "
            f"{_range(f'{least:.1f} ({least_task})', f'{most:.1f} ({most_task})')} points."
        )
    few = [one.task for one in differences if one.task != ALL and one.detectable is None]
    if few:
        yield f"Too few items to detect any difference: {', '.join(map(task_name, few))}."


def _range(least: str, most: str) -> str:
    return least if least == most else f"from {least} to {most}"


def _gaps(old: dict[str, _Items], new_run: ScoredRun) -> Iterator[str]:
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
    old_run: ScoredRun, new_run: ScoredRun, old: dict[str, _Items], new: dict[str, _Items]
) -> Iterator[str]:
    """Yield in what the runs differ, beside their answers."""
    yield from _only_in("old", [task for task in old if task not in new])
    yield from _only_in("new", [task for task in new if task not in old])
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
    old_info, new_info = old_run.info, new_run.info
    for what, before, after in (
        ("Samples per item", old_info.samples, new_info.samples),
        ("Transformations", old_info.transform or NO_TRANSFORM, new_info.transform or NO_TRANSFORM),
    ):
        if before != after:
            yield f"{what} differ: {before} (old), {after} (new)."
    for name in _SETTINGS:
        one, two = (info.settings.get(name) for info in (old_info, new_info))
        if one != two:
            yield f"Settings differ: {name} {one} (old), {two} (new)."
    if changed_prompts(old_info.prompt, new_info.prompt):
        yield f"Prompts differ: {old_info.prompt.name} (old), {new_info.prompt.name} (new)."


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
    missing = ", ".join(task_name(task) for task in before if task not in after)
    gaps = [f"{missing} missing from the new run"] if missing else []
    return _regression("problem sizes", tasks, notes, list(_worse(tasks)), gaps, partial)


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
