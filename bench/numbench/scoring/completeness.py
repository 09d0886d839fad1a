"""How much of its dataset a run answers, and whether that is enough for a rank."""

from __future__ import annotations

from typing import NamedTuple

from numbench.scoring.scored_run import ScoredRun

MAX_UNANSWERED_SHARE = 0.01


class Completeness(NamedTuple):
    """answered: samples with an answer. total: those of every task of the dataset.

    Samples that `--limit`, `--tasks` or a shard leaves out, that an interruption left open, and
    those whose request failed have no answer.

    is_complete: whether at least 99 % of the samples of every task are answered, so that the
    others, which may be the hard ones, move a task's score by 1 point at most.
    """

    answered: int
    total: int
    is_complete: bool

    def __str__(self) -> str:
        """Return `27 of 4,500`."""
        return f"{self.answered:,} of {self.total:,}"


def completeness(run: ScoredRun) -> Completeness:
    """Return how many samples of its dataset a run answers."""
    answers, totals = [], []
    for task, items in run.dataset.by_task.items():
        answers.append(sum(row.is_answered for row in run.rows.get(task, ())))
        totals.append(len(items) * run.info.samples)
    is_complete = all(
        answered >= (1 - MAX_UNANSWERED_SHARE) * total
        for answered, total in zip(answers, totals, strict=True)
    )
    return Completeness(sum(answers), sum(totals), is_complete)
