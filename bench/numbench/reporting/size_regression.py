"""Comparison of two measurements of problem sizes: is an h50 significantly smaller?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numbench.errors import BadInput
from numbench.horizon.estimate import HorizonShift, TaskHorizon, compare_horizons
from numbench.journal.run_folder import Run
from numbench.reporting.comparisons import NOT_SIGNIFICANT, Verdict, task_name
from numbench.reporting.regression import (
    ComparedTask,
    Regression,
    compared_run,
    only_in,
    setting_differences,
    with_gaps,
    worse_tasks,
)
from numbench.scoring.horizon_outcomes import read_horizons
from numbench.stats.intervals import ALPHA
from numbench.stats.multiple_testing import holm


def compare_sizes(
    old_run: Run, new_run: Run, partial: bool, on: Sequence[str] | None
) -> Regression:
    """Compare two measurements of problem sizes by h50; see `compare`."""
    old, new = old_run.path, new_run.path
    before, after = read_horizons(old), read_horizons(new)
    if on:
        before, after = ({t: known[t] for t in known if t in on} for known in (before, after))
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
    notes += only_in("new", [task for task in after if task not in before])
    missing = ", ".join(task_name(task) for task in before if task not in after)
    gaps = [f"{missing} missing from the new run"] if missing else []
    first, second = (compared_run(run.path, run.info, "", {}) for run in (old_run, new_run))
    notes = [*setting_differences(old_run.info, new_run.info), *notes]
    failures = tuple(worse_tasks(tasks))
    result = Regression("problem sizes", first, second, tasks, tuple(notes), failures)
    return with_gaps(result, gaps, partial)


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
