"""Whether a run is complete: the one rule for ranks, verification, publication and comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from numbench.scoring.scored_run import ScoredRun

MIN_ANSWERED_PERCENT = 99


class Completeness(NamedTuple):
    """How many of the expected samples are answered. by_task: task → (answered, expected)."""

    by_task: Mapping[str, tuple[int, int]]

    @property
    def answered(self) -> int:
        """Return the number of samples with an answer."""
        return sum(answered for answered, _ in self.by_task.values())

    @property
    def total(self) -> int:
        """Return the number of expected samples."""
        return sum(total for _, total in self.by_task.values())

    @property
    def incomplete_tasks(self) -> list[str]:
        """Return the tasks with answers to fewer than 99% of their samples."""
        return [
            task
            for task, (answered, total) in self.by_task.items()
            if 100 * answered < MIN_ANSWERED_PERCENT * total
        ]

    @property
    def is_complete(self) -> bool:
        """Return whether at least 99% of the samples of every task are answered.

        The others, which may be the hard ones, then move a task's score by 1 point at most.
        """
        return not self.incomplete_tasks

    def __str__(self) -> str:
        """Return `27 of 4,500`."""
        return f"{self.answered:,} of {self.total:,}"


def completeness(
    run: ScoredRun, expected: Mapping[str, Collection[str]] | None = None
) -> Completeness:
    """Return how many samples a run answers: of its dataset, or of the `expected` item ids by task.

    Samples that `--limit`, `--tasks` or a shard leaves out, that an interruption left open, and
    those whose request failed have no answer.
    """
    if expected is None:
        expected = {
            task: [item.id for item in items] for task, items in run.dataset.by_task.items()
        }
    by_task = {}
    for task, item_ids in expected.items():
        ids = frozenset(item_ids)
        answered = sum(row.is_answered and row.item.id in ids for row in run.rows.get(task, ()))
        by_task[task] = answered, len(ids) * run.info.samples
    return Completeness(by_task)
