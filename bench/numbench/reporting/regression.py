"""The result of a comparison of a new run with an old one, and the sentences that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from numbench.errors import BadInput
from numbench.journal.identity import InfoDifference, find_differences
from numbench.journal.run_folder import find_runs, utc_time
from numbench.records import RunInfo
from numbench.reporting.comparisons import Verdict, task_name
from numbench.reporting.names import variant_name

if TYPE_CHECKING:
    import pandas as pd


class ComparedTask(NamedTuple):
    """The new run compared with the old one on one task, or on the mean over tasks (`all`).

    old, new: scores in percent, or h50 in the unit of the task. change: new − old in points, or
    new / old; low, high: its 95% interval. p: after Holm's correction over the tasks; that of the
    mean is not corrected. items: that both runs answered, None for problem sizes. at_least: the
    one-sided 95% bound of a change in points, with a margin. detectable: the smallest true drop in
    points that the comparison finds with a probability of 80%. decides: whether the comparison
    fails if this is worse. texts: of old, new and the change.
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
    detectable: float | None = None
    decides: bool = True


class ComparedRun(NamedTuple):
    """Which run was compared.

    server: its address, or the route of the model; empty for models in this process. created: when
    the run began. signatures: task → signature.
    """

    path: Path
    model: str
    display: str
    reasoning: str
    variant: str
    server: str
    dataset: str
    created: str
    signatures: Mapping[str, str]

    def __str__(self) -> str:
        """Return `served (default), http://127.0.0.1:8000/v1, v1@3f9c2a, 2026-11-26T03:00`."""
        began = utc_time(self.created)[:16]
        parts = (self.variant, self.server, self.dataset, began, str(self.path))
        return ", ".join(filter(None, (f"{self.display} ({self.reasoning})", *parts)))


class Regression(NamedTuple):
    """Comparison of a new run with an old one.

    measure: what was compared. notes: facts about it. failures: why the new run does not pass,
    empty if it does. margin: the largest acceptable regression in points, None if differences were
    tested. differs_in: what shapes an answer and differs, such as the model.
    """

    measure: Literal["scores", "problem sizes"]
    old: ComparedRun
    new: ComparedRun
    tasks: tuple[ComparedTask, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    margin: float | None = None
    differs_in: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the compared tasks as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.tasks)

    @property
    def reach(self) -> str:
        """Which drop, or which margin, the questions can show; empty if none."""
        tasks = [task for task in self.tasks if task.decides]
        bounds = [(task.at_least, task.task) for task in tasks if task.at_least is not None]
        if self.margin is not None and bounds:
            least, worst = min(bounds)
            points = f"{max(0.0, -least):.1f} points ({task_name(worst)})"
            return f"Largest regression that is not excluded: {points}."
        drops = [(task.detectable, task.task) for task in tasks if task.detectable is not None]
        if self.margin is not None or not drops:
            return ""
        listed = ", ".join(f"{drop:.1f} points ({task_name(task)})" for drop, task in drops)
        return f"Smallest true drop that fails this comparison with a probability of 80%: {listed}."

    @property
    def differences(self) -> str:
        """In what the runs differ beside their answers; empty if in nothing."""
        return f"the runs differ in {', '.join(self.differs_in)}" if self.differs_in else ""

    @property
    def summary(self) -> str:
        """The result in one line, for a log."""
        decisive = [task for task in self.tasks if task.decides]
        parts = [f"{task_name(task.task)} {task.texts[0]} -> {task.texts[1]}" for task in decisive]
        parts += [f"change {decisive[0].texts[2]}"] if len(decisive) == 1 else []
        known = [task.detectable for task in decisive if task.detectable is not None]
        parts += [f"detects a drop of {max(known):.1f}"] if known and self.margin is None else []
        parts += [f"margin {self.margin:g}"] if self.margin is not None else []
        others = (failure for failure in self.failures if " -> " not in failure)
        parts += dict.fromkeys(filter(None, (self.differences, *others)))
        return f"{'FAIL' if self.failures else 'PASS'}: {', '.join(parts)}"


def run_folder(path: Path) -> Path:
    """Return the only run folder at or below `path`. Raises BadInput if there are several."""
    folders = find_runs([path])
    if len(folders) > 1:
        raise BadInput(f"{path}: contains {len(folders)} runs; name one of them, e.g. {folders[0]}")
    return folders[0]


def excludes(task: ComparedTask, margin: float) -> bool:
    """Return whether the new run is not worse by `margin` points or more."""
    return task.at_least is not None and task.at_least > -margin


def compared_run(
    path: Path, info: RunInfo, dataset: str, signatures: Mapping[str, str]
) -> ComparedRun:
    server = str(info.settings.get("base_url") or info.settings.get("route") or "")
    return ComparedRun(
        path, info.model, info.display, info.reasoning, variant_name(info), server, dataset,
        info.created, signatures,
    )  # fmt: skip


def setting_differences(old: RunInfo, new: RunInfo) -> dict[str, str]:
    """Return what shapes an answer and differs, each with a sentence."""
    sentences: dict[str, str] = {}
    by_task: dict[str, list[str]] = {}
    who = [each.display.partition("answered by ")[2] for each in (old, new)]
    differences = [*find_differences(old, new, ("samples",))]
    if who[0] != who[1]:
        shown = [name or "the model asked" for name in who]
        differences.append(InfoDifference("who answered", *shown))
    for field, before, after in differences:
        what, is_of_task, task = field.removeprefix("settings.").partition(" for ")
        if is_of_task:
            by_task.setdefault(what, []).append(task)
        else:
            sentences[what] = f"The runs differ in {what}: {before} (old), {after} (new)."
    for what, tasks in by_task.items():
        sentences[what] = f"The runs differ in {what} for {', '.join(tasks)}."
    return sentences


def worse_tasks(tasks: Sequence[ComparedTask]) -> Iterator[str]:
    for task in tasks:
        if task.verdict == "worse":
            old, new, change = task.texts
            points, items = (" points", f", {task.items} questions") if task.items else ("", "")
            about = f"{change}{points}, p {task.p:.2g}{items}"
            yield f"{task_name(task.task)}: {old} -> {new} ({about})"


def with_gaps(result: Regression, gaps: Sequence[str], partial: bool) -> Regression:
    """Return a comparison in which gaps, what only the old run has, are notes or failures."""
    if partial or not gaps:
        notes = (f"Partial: {gap}." for gap in gaps)
        return result._replace(notes=(*result.notes, *notes))
    last = f"{gaps[-1]}; --partial compares what both runs answered"
    return result._replace(failures=(*result.failures, *gaps[:-1], last))


def only_in(name: str, tasks: Sequence[str]) -> Iterator[str]:
    if tasks:
        yield f"Only the {name} run includes {', '.join(map(task_name, tasks))}: not compared."
