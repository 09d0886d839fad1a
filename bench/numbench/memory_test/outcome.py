"""The outcome of a memory test: differences between frozen and fresh items, and the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from numbench.journal.identity import find_difference
from numbench.memory_test.registration import (
    CERTIFICATE,
    FRESH_RUN,
    FROZEN_RUN,
    Registration,
    find_fault,
    read_registration,
)
from numbench.memory_test.rule import (
    PairedDesign,
    Verdict,
    adjusted_p_values,
    decide,
    detectable_share,
    shared_weights,
)
from numbench.scoring import ScoredRun, score_run
from numbench.scoring.scored_run import counted_rows
from numbench.stats.design import Column, Matrix, Stratum
from numbench.stats.paired import Difference, compare

OVERALL = "overall"
"""Name, in place of a task, of the unweighted mean over the tasks of a memory test."""

_MAXIMUM = 100.0


class PairedTask(NamedTuple):
    """One task, or `OVERALL`: right answers in percent, and their difference in points.

    result: frozen minus fresh, None without a common pair. p: after Holm's correction.
    """

    task: str
    frozen: float | None
    fresh: float | None
    result: Difference | None
    p: float | None


class Outcome(NamedTuple):
    """The outcome of a memory test.

    verdict: None before the last answer, and where the runs do not belong to the registration;
    reason says why. detectable: the least share of known items, 0 to 1, that the rule would have
    shown with 80% power at this share of right answers to fresh items; None if there is none.
    """

    folder: Path
    display: str
    registration: Registration
    rows: tuple[PairedTask, ...]
    verdict: Verdict | None
    reason: str = ""
    detectable: float | None = None

    @property
    def overall(self) -> PairedTask:
        """The mean over the tasks."""
        return self.rows[-1]

    @property
    def label(self) -> str:
        """Model and level, as in `GPT 5 (minimal)`."""
        return f"{self.display} ({self.registration.reasoning})"


def find_outcomes(runs: Sequence[ScoredRun]) -> tuple[Outcome, ...]:
    """Return the outcomes of the memory tests whose two runs are among `runs`, in their order.

    The rule is about the protocol `exact`; runs under another one have no outcome.
    """
    runs_in: dict[Path, dict[str, ScoredRun]] = defaultdict(dict)
    for run in runs:
        if run.protocol == "exact" and run.path.name in (FROZEN_RUN, FRESH_RUN):
            runs_in[run.path.parent][run.path.name] = run
    found = []
    for folder, pair in runs_in.items():
        registration = read_registration(folder)
        if registration is not None and len(pair) == 2:
            found.append(outcome(folder, registration, pair[FROZEN_RUN], pair[FRESH_RUN]))
    return tuple(found)


def holds_memory_test(folder: Path) -> bool:
    """Return whether a folder has both runs of a memory test, and its registration."""
    return all((folder / name).exists() for name in (CERTIFICATE, FROZEN_RUN, FRESH_RUN))


def read_outcome(folder: Path) -> Outcome:
    """Return the outcome of the memory test in a folder. Raises BadInput if a run is missing."""
    (known,) = find_outcomes([score_run(folder / name) for name in (FROZEN_RUN, FRESH_RUN)])
    return known


def outcome(
    folder: Path, registration: Registration, frozen: ScoredRun, fresh: ScoredRun
) -> Outcome:
    """Return the outcome of a memory test with its two runs."""
    known = (_stratum(task, registration.pairs, frozen, fresh) for task in registration.tasks)
    strata = [stratum for stratum in known if stratum is not None]
    nothing = (PairedTask(OVERALL, None, None, None, None),)
    rows = paired_tasks(strata) if strata else nothing
    result = Outcome(folder, frozen.info.display, registration, rows, None)
    if registration.seed is None:
        return result._replace(reason="not all questions are answered, so there is no verdict yet")
    if fault := _find_fault(registration, frozen, fresh):
        return result._replace(reason=fault)
    overall = result.overall
    if overall.result is None or len(strata) < len(registration.tasks):
        return result._replace(reason="a task has no pair of answers")
    tasks = [row.result for row in rows[:-1] if row.result is not None]
    verdict = decide(tasks, overall.result, registration.rule.margin)
    return result._replace(verdict=verdict, detectable=_detectable(rows[:-1], strata))


def paired_tasks(strata: Sequence[Stratum]) -> tuple[PairedTask, ...]:
    """Return the differences of the tasks, then that of their mean.

    strata: one per task, with the percentage of correct answers to frozen and fresh items, of shape
    (items, 2), NaN without an answer. An item counts if it is answered in both runs.
    """
    comparison = compare(strata, ((0, 1),), _MAXIMUM, one_sided=True)
    overall = comparison.overall[0]
    assert overall is not None
    results = [result for (result,) in comparison.strata if result is not None]
    means = [s.values[~np.isnan(s.values).any(axis=1)].mean(axis=0) for s in strata]
    rows = zip(
        (*(stratum.name for stratum in strata), OVERALL),
        np.array([*means, np.mean(means, axis=0)]).tolist(),
        (*results, overall),
        adjusted_p_values(results, overall),
        strict=True,
    )
    return tuple(
        PairedTask(name, frozen, fresh, result, p) for name, (frozen, fresh), result, p in rows
    )


def _stratum(task: str, pairs: int, frozen: ScoredRun, fresh: ScoredRun) -> Stratum | None:
    """Return the right answers of a task pair by pair, None without a pair of two answers."""
    columns = [_right_answers(task, pairs, run) for run in (frozen, fresh)]
    values: Matrix = np.column_stack(columns)
    if np.isnan(values).any(axis=1).all():
        return None
    # Pairs of different tasks whose frozen items have the same operands were drawn together.
    items = frozen.dataset.by_task[task][:pairs]
    return Stratum(task, values, clusters=[item.operands for item in items])


def _right_answers(task: str, pairs: int, run: ScoredRun) -> Column:
    """Return the share of right answers to each item in percent, NaN for one without an answer."""
    values = np.full(pairs, np.nan)
    if task in run.rows:
        rows = counted_rows(run, task)
        rows = rows.select(rows.columns["item"] < pairs)
        means = rows.item_means(_MAXIMUM * rows.columns["exact_match"])
        values[rows.items.columns["item"]] = means
    return values


def _find_fault(registration: Registration, frozen: ScoredRun, fresh: ScoredRun) -> str | None:
    """Return why the runs are not those of the registration, None if they are."""
    if frozen.info.dataset.sha256 != registration.dataset.sha256:
        return "the run on the frozen questions is about another dataset"
    if fresh.info.dataset.sha256 != registration.fresh_sha256:
        return "the run on the fresh questions is about other questions"
    alike = msgspec.structs.replace(frozen.info, dataset=fresh.info.dataset)
    if difference := find_difference(alike, fresh.info, ("samples", "limit", "shard")):
        field, one, other = difference
        return f"the two runs differ in {field}: {one} and {other}"
    return find_fault(registration, frozen.dataset, fresh.dataset)


def _detectable(rows: Sequence[PairedTask], strata: Sequence[Stratum]) -> float | None:
    """Return the detectable share of known items, for the pairs with two answers."""
    pairs = [row.result.n for row in rows if row.result is not None]
    right = [row.fresh / 100 for row in rows if row.fresh is not None]
    weights = shared_weights([set(stratum.clusters or ()) for stratum in strata])
    return detectable_share(PairedDesign(min(pairs), weights), right)
