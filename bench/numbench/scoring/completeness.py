"""How much of its dataset a run answers: the one definition of a complete run."""

from __future__ import annotations

from typing import NamedTuple

from numbench.scoring.scored_run import ScoredRun


class Completeness(NamedTuple):
    """answered: samples with an answer. total: those of every task of the dataset.

    Samples that `--limit`, `--tasks` or a shard leaves out, that an interruption left open, and
    those whose request failed have no answer.
    """

    answered: int
    total: int

    @property
    def is_complete(self) -> bool:
        """Whether every sample of every task is answered."""
        return self.answered == self.total

    def __str__(self) -> str:
        """Return `27 of 4,500`."""
        return f"{self.answered:,} of {self.total:,}"


def completeness(run: ScoredRun) -> Completeness:
    """Return how many samples of its dataset a run answers."""
    answered = sum(row.is_answered for rows in run.rows.values() for row in rows)
    items = sum(map(len, run.dataset.by_task.values()))
    return Completeness(answered, items * run.info.samples)
