"""Comparison of a new run with an old one: is a score, or a problem size, significantly worse?

The old one may be a baseline, the file with the scores of a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from numbench.core import jsonl
from numbench.core.texts import Sentences
from numbench.dataset.store import Dataset
from numbench.errors import BadInput
from numbench.horizon.estimate import HorizonShift, TaskHorizon, compare_horizons
from numbench.journal.run_folder import Run, read_info, read_run
from numbench.records import SCHEMA, ProtocolName, RunInfo, Schema
from numbench.reporting.comparisons import (
    ALL,
    NOT_SIGNIFICANT,
    PairDifference,
    Verdict,
    compare_values,
    task_name,
)
from numbench.reporting.regression import (
    ComparedRun,
    ComparedTask,
    Regression,
    compared_run,
    excludes,
    only_in,
    run_folder,
    setting_differences,
    with_gaps,
    worse_tasks,
)
from numbench.reporting.values import RunValues, run_values, task_values
from numbench.scoring import ScoredRun, score_dataset_run, signature
from numbench.scoring.horizon_outcomes import read_horizons
from numbench.scoring.scored_run import MIN_ANSWERED_PERCENT, Completeness
from numbench.stats.intervals import ALPHA
from numbench.stats.multiple_testing import holm

T = TypeVar("T")

_text = Sentences(__file__)

MIN_COMMON = 6
"""Common questions of a task; with fewer, no difference is significant."""


def compare(
    old: Path,
    new: Path,
    protocol: ProtocolName = "exact",
    margin: float | None = None,
    partial: bool = False,
    on: Sequence[str] | None = None,
    strict: bool = False,
) -> Regression:
    """Compare run `new` with run `old`, which may be the file of a baseline.

    The comparison fails if the mean over the common tasks is significantly worse, or with `on`, if
    one of these tasks is, after Holm's correction over them. With `margin`, it fails instead unless
    a regression of more than `margin` points is excluded (one-sided test at the 5% level). Tasks
    and answers that only the old run has also fail; with `partial` they are notes. With `strict`,
    it also fails if anything else differs that shapes an answer, such as the model. Without enough
    common answers to find any drop, it fails. Measurements of problem sizes are compared by h50,
    over all tasks or those of `on`.

    Raises BadInput for runs that cannot be compared, and for a margin that is out of range.
    """
    # The comparison is also false for NaN.
    if margin is not None and not 0 < margin < 100:
        raise BadInput(f"--margin {margin:g}: give points between 0 and 100")
    old, new = old if old.is_file() else run_folder(old), run_folder(new)
    sizes = [not each.is_file() and read_info(each).horizon is not None for each in (old, new)]
    if all(sizes) and margin is not None:
        raise BadInput("--margin is in points of a score; horizon runs have none")
    if any(sizes) and not all(sizes):
        horizon, other = (old, new) if sizes[0] else (new, old)
        raise BadInput(_text("mixed", horizon=horizon, other=other))
    if all(sizes):
        result = compare_sizes(read_run(old), read_run(new), partial, on)
    else:
        result = compare_scores(old, new, protocol, margin, partial, on)
    failures = (result.differences,) if strict and result.differs_in else ()
    return result._replace(failures=(*failures, *result.failures))


def compare_scores(
    old: Path,
    new: Path,
    protocol: ProtocolName,
    margin: float | None,
    partial: bool,
    on: Sequence[str] | None,
) -> Regression:
    new_run = score_dataset_run(new, protocol)
    after = _side_of(new_run)
    if old.is_file():
        before = read_baseline(old, protocol, [new_run.dataset])
    else:
        before = _side_of(score_dataset_run(old, protocol))
    if before.values.dataset != after.values.dataset:
        names = {"old_dataset": before.run.dataset, "new_dataset": after.run.dataset}
        raise BadInput(_text("datasets", old=old, new=new, **names))
    old_items, new_items = _chosen_tasks([(old, before.items), (new, after.items)], on)
    both = [task for task in old_items if task in new_items]
    if not any(any(items.values()) for items in old_items.values()):
        raise BadInput(_text("unanswered", old=old))
    common = max(len(old_items[task].keys() & new_items[task].keys()) for task in both)
    if common < MIN_COMMON and not partial:
        counts = {"common": common, "needed": MIN_COMMON}
        raise BadInput(_text("few_questions", old=old, new=new, **counts))
    chosen = [
        RunValues(side.values.dataset, {task: side.values.tasks[task] for task in both})
        for side in (after, before)
    ]
    known = compare_values(chosen, one_sided=margin is not None, decisive=len(on or [ALL]))
    tasks = _decisive_first(known.differences, on)
    decisive = [task for task in tasks if task.decides]
    failures = list(worse_tasks(decisive) if margin is None else _not_excluded(decisive, margin))
    failures += _blind(decisive, margin)
    gaps = list(_gaps(old_items, new_items, min(each.info.samples for each in (before, after))))
    untested = [task_name(task) for task in both if task not in {task.task for task in tasks}]
    if untested and margin is not None:
        gaps.append(_text("nothing_excluded", tasks=", ".join(untested)))
    differences = setting_differences(before.info, after.info)
    notes = [*_served(before.served, after.served), *differences.values()]
    notes += _notes(old_items, new_items, tasks)
    # Without any common answer, there is nothing to compare.
    has_common = any(_answered(old_items[task]) & _answered(new_items[task]) for task in both)
    runs = before.run, after.run
    result = Regression(
        "scores", *runs, tasks, tuple(notes), tuple(failures), margin, tuple(differences)
    )
    return with_gaps(result, gaps, partial and has_common)


def _decisive_first(
    differences: Sequence[PairDifference], on: Sequence[str] | None
) -> tuple[ComparedTask, ...]:
    """Return the results that decide, then the others, with Holm's correction over the tasks."""
    # A single task is its own mean.
    overall = [] if on else [one for one in differences if one.task == ALL]
    tasks = [one for one in differences if one.task != ALL]
    p_values = holm([one.p for one in tasks])
    return (
        *(_compared_task(one, one.p, True) for one in overall),
        *(_compared_task(one, p, not overall) for one, p in zip(tasks, p_values, strict=True)),
    )


def _not_excluded(tasks: Sequence[ComparedTask], margin: float) -> Iterator[str]:
    if failed := [task for task in tasks if not excludes(task, margin)]:
        listed = ", ".join(f"{task_name(one.task)} {one.at_least:+.1f}" for one in failed)
        yield _text("not_excluded", margin=margin, tasks=listed)


def _compared_task(one: PairDifference, p: float, decides: bool) -> ComparedTask:
    """Return a result with its corrected p-value."""
    one, (new, old) = one._replace(p_adjusted=p), one.means
    change = f"{one.difference:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"
    return ComparedTask(
        one.task, old, new, one.difference, one.low, one.high, one.p_adjusted, one.verdict,
        (f"{old:.1f}", f"{new:.1f}", change), one.items, one.at_least,
        one.detectable if decides else None, decides,
    )  # fmt: skip


def _blind(decisive: Sequence[ComparedTask], margin: float | None) -> Iterator[str]:
    """Yield why a comparison would pass whatever the new run answers."""
    if margin is not None:
        low = [f"{task_name(task.task)} {task.old:.1f}" for task in decisive if task.old <= margin]
        if low:
            yield _text("margin_too_large", margin=margin, tasks=", ".join(low))
        return
    few = [task_name(task.task) for task in decisive if task.detectable is None]
    if few or not decisive:
        yield _text("too_few") + f": {', '.join(few)}" * bool(few)
    for task in decisive:
        if task.detectable is not None and task.detectable > task.old:
            name, least = task_name(task.task), task.detectable
            yield _text("no_drop", task=name, detectable=least, old=task.old)


def _gaps(old: ItemsByTask, new: ItemsByTask, samples: int) -> Iterator[str]:
    """Yield which tasks and answers only the old run has. samples: per item, in both."""
    if missing := [task_name(task) for task in old if task not in new]:
        what = missing[0] if len(missing) == 1 else f"{len(missing)} of {len(old)} tasks"
        yield _text("missing", tasks=what)
    by_task = {}
    for task in (task for task in old if task in new):
        # An item that the new run does not include has no answer.
        now, before = new[task], old[task].items()
        counts = [(min(count, samples), now.get(item, 0)) for item, count in before]
        by_task[task] = sum(map(min, counts)), sum(expected for expected, _ in counts)
    known = Completeness(by_task)
    if tasks := known.incomplete_tasks:
        answered, total = map(sum, zip(*(known.by_task[task] for task in tasks), strict=True))
        where = task_name(tasks[0]) if len(tasks) == 1 else f"{len(tasks)} tasks"
        yield _text(
            "fewer_answers", answered=answered, total=total, tasks=where,
            unit="questions" if samples == 1 else "samples", percent=MIN_ANSWERED_PERCENT,
        )  # fmt: skip


def _notes(old: ItemsByTask, new: ItemsByTask, tasks: Sequence[ComparedTask]) -> Iterator[str]:
    """Yield what was not compared, and which tasks are worse that do not decide."""
    if worse := [task.task for task in tasks if task.verdict == "worse" and not task.decides]:
        names = ", ".join(map(task_name, worse))
        yield _text("does_not_decide", tasks=names, names=",".join(worse))
    yield from only_in("old", [task for task in old if task not in new])
    yield from only_in("new", [task for task in new if task not in old])
    lengths, once = set(), 0
    for one, two in ((old[task], new[task]) for task in old if task in new):
        if common := one.keys() & two.keys():
            lengths.add((len(one), len(two), len(common)))
            once += len((_answered(one) ^ _answered(two)) & common)
    for first, second, compared in sorted(lengths):
        if not first == second == compared:
            yield _text("questions", old=first, new=second, compared=compared)
    if once:
        yield _text("answered_by_one", count=once)


def _answered(counts: Mapping[str, int]) -> set[str]:
    return {item for item, count in counts.items() if count}


def _served(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for name, warnings in (("old", old), ("new", new)):
        yield from (_text("served", name=name, warning=warning) for warning in warnings)


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of a run, to compare later runs with: a file of `numbench export --to baseline`.

    path: of the run. scores: task → score in percent per question, in the order of the run's
    questions; null without an answer. answers: likewise, the number of answers per question; older
    files lack it.
    """

    path: str
    info: RunInfo
    dataset: str
    protocol: ProtocolName
    signatures: dict[str, str]
    scores: dict[str, tuple[Annotated[float, msgspec.Meta(ge=0, le=100)] | None, ...]]
    answers: dict[str, tuple[int, ...]] = {}
    schema: Schema = SCHEMA


ItemsByTask = Mapping[str, Mapping[str, int]]
"""The ids of a task's items in a run, and the number of answers to each."""


class Side(NamedTuple):
    """A run or a baseline, as far as a comparison needs it."""

    run: ComparedRun
    info: RunInfo
    values: RunValues
    items: ItemsByTask
    served: Sequence[str] = ()
    """Warnings about who answered."""


def write_baseline(run: Path, file: Path, protocol: ProtocolName = "exact") -> None:
    """Write the scores of a run to a file that `compare` takes in place of the run.

    An earlier baseline is replaced. Raises BadInput if `file` is anything else.
    """
    if file.exists():
        try:
            jsonl.read_json(file, Baseline)
        except BadInput as error:
            raise BadInput(f"--out {file} exists and is not a baseline: name a new file") from error
    scored = score_dataset_run(run_folder(run), protocol)
    side = _side_of(scored)
    scores: dict[str, tuple[float | None, ...]] = {}
    for task, values in side.values.tasks.items():
        items = scored.dataset.by_task[task]
        known = dict(zip(values.index.tolist(), values.score.tolist(), strict=True))
        included = side.items[task]
        scores[task] = tuple(known.get(i) for i, item in enumerate(items) if item.id in included)
    # The path of the dataset is one of this machine.
    reference = msgspec.structs.replace(scored.info.dataset, path=scored.info.dataset.name)
    info = msgspec.structs.replace(scored.info, dataset=reference)
    baseline = Baseline(
        path=scored.path.name, info=info, dataset=side.run.dataset, protocol=protocol,
        signatures=dict(side.run.signatures), scores=scores,
        answers={task: tuple(counts.values()) for task, counts in side.items.items()},
    )  # fmt: skip
    jsonl.write_atomically(file, msgspec.json.encode(baseline) + b"\n")


def read_baseline(file: Path, protocol: ProtocolName, datasets: Sequence[Dataset]) -> Side:
    """Read a baseline, without values if none of the datasets has its questions."""
    baseline = jsonl.read_json(file, Baseline)
    info, sha256 = baseline.info, baseline.info.dataset.sha256
    if baseline.protocol != protocol:
        raise BadInput(f"{file} has scores of the protocol {baseline.protocol}, not {protocol}")
    run = compared_run(file, info, baseline.dataset, baseline.signatures)
    dataset = next((one for one in datasets if one.manifest.sha256 == sha256), None)
    if dataset is None:
        return Side(run, info, RunValues(sha256, {}), {})
    values, items = {}, {}
    for task, scores in baseline.scores.items():
        if task not in dataset.by_task:
            raise BadInput(f"{file}: dataset {baseline.dataset} has no task {task!r}")
        asked = [item.id for item in info.select_items(dataset.by_task[task])]
        unknown = [info.samples * (score is not None) for score in scores]
        answers = baseline.answers.get(task, unknown)
        if {len(scores), len(answers)} != {len(asked)}:
            raise BadInput(f"{file}: {len(scores)} scores of {task}, not {len(asked)}")
        known = zip(asked, scores, strict=True)
        answered = {item_id: score for item_id, score in known if score is not None}
        values[task] = task_values(dataset, task, [*answered], {"score": [*answered.values()]})
        items[task] = dict(zip(asked, answers, strict=True))
    return Side(run, info, RunValues(sha256, values), items)


def _side_of(run: ScoredRun) -> Side:
    items: dict[str, Counter[str]] = {}
    for task, rows in run.rows.items():
        items[task] = Counter(dict.fromkeys((row.item.id for row in rows), 0))
        items[task].update(row.item.id for row in rows.select(rows.is_answered))
    signatures = {task: signature(run, task) for task in run.rows}
    known = compared_run(run.path, run.info, run.dataset.label, signatures)
    return Side(known, run.info, run_values(run), items, run.served.warnings)


def _chosen_tasks(
    runs: Sequence[tuple[Path, Mapping[str, T]]], on: Sequence[str] | None
) -> list[dict[str, T]]:
    """Return what is known of the tasks of each run, or of those in `on` only."""
    for task in on or ():
        if missing := [path for path, tasks in runs if task not in tasks]:
            raise BadInput(f"--on {task}: {missing[0]} has no such task")
    chosen = [{task: tasks[task] for task in on or tasks} for _, tasks in runs]
    if not set.intersection(*map(set, chosen)):
        raise BadInput(f"{' and '.join(str(path) for path, _ in runs)} have no task in common")
    return chosen


def compare_sizes(
    old_run: Run, new_run: Run, partial: bool, on: Sequence[str] | None
) -> Regression:
    """Compare two measurements of problem sizes by h50; see `compare`."""
    folders = old_run.path, new_run.path
    before, after = _chosen_tasks([(each, read_horizons(each)) for each in folders], on)
    if not any(each.items for each in before.values()):
        raise BadInput(_text("unanswered", old=old_run.path))
    answers = {task: min(before[task].items, after[task].items) for task in before if task in after}
    common = [task for task, count in answers.items() if count]
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
        notes.append(_text("largest_sizes", tasks=", ".join(limited)))
    notes += only_in("new", [t for t, each in after.items() if each.items and t not in common])
    gaps = {
        "missing": [t for t, each in before.items() if each.items and t not in common],
        "cut_off": [t for t in common if after[t].stop is None or after[t].items < MIN_COMMON],
    }
    first, second = (compared_run(run.path, run.info, "", {}) for run in (old_run, new_run))
    differences = setting_differences(old_run.info, new_run.info)
    served = _served(old_run.served.warnings, new_run.served.warnings)
    notes = [*served, *differences.values(), *notes]
    is_blind = max(answers.values()) < MIN_COMMON
    failures = (*worse_tasks(tasks), *[_text("too_few")] * is_blind)
    result = Regression(
        "problem sizes", first, second, tasks, tuple(notes), failures,
        differs_in=tuple(differences),
    )  # fmt: skip
    listed = {gap: ", ".join(map(task_name, tasks)) for gap, tasks in gaps.items() if tasks}
    said = [_text(gap, tasks=tasks, needed=MIN_COMMON) for gap, tasks in listed.items()]
    return with_gaps(result, said, partial)


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
        yield _text("doubtful_fits", name=name, tasks=", ".join(doubtful))
    unfinished = [task_name(t) for t in tasks if horizons[t].stop is None]
    if unfinished and name == "old":
        yield _text("unfinished", tasks=", ".join(unfinished))
