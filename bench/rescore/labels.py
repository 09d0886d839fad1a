"""The study's labels held against exact truth, and the best score that they allow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from bench.dataset.audit import Wrong, check, read_label
from bench.dataset.store import Dataset
from bench.records import Item, Response
from bench.scoring import headline, score_paper
from bench.scoring.labels import read_labels
from bench.scoring.paper import ITEMS
from bench.tasks import TASKS


class Ceiling(NamedTuple):
    """What an oracle that is always right gets by the study's scoring, in percent.

    score: in the task's headline metric.
    """

    score: float
    exact_match: float


class Labels(NamedTuple):
    """The labels of a task: how many there are, the wrong ones, and what they cost an oracle."""

    task: str
    n: int
    wrong: tuple[Wrong, ...]
    ceiling: Ceiling

    @property
    def largest_error(self) -> float | None:
        """The largest relative error of a wrong label; None where none is known."""
        errors = [w.relative_error for w in self.wrong if w.relative_error is not None]
        return max(errors, default=None)


def audit_labels(dataset: Dataset) -> list[Labels]:
    """The published labels that lie beside an imported dataset, by task."""
    labels = read_labels(dataset.path)
    known = {
        task: [(item, labels[item.id]) for item in items if item.id in labels]
        for task, items in dataset.by_task.items()
    }
    return [_of_task(task, pairs) for task, pairs in known.items() if pairs]


def wrong_label(item: Item, label: str) -> Wrong | None:
    """The fault of a label that was published for an item; None where it is right."""
    return check(read_label(item.id, "prompt", item.prompt, label))


def _of_task(task: str, known: Sequence[tuple[Item, str]]) -> Labels:
    faults = [fault for pair in known if (fault := wrong_label(*pair)) is not None]
    return Labels(task, len(known), tuple(faults), _ceiling(task, known[:ITEMS]))


def _ceiling(task: str, labels: Iterable[tuple[Item, str]]) -> Ceiling:
    scores = [score_paper(item, _oracle(item), label) for item, label in labels]
    return Ceiling(
        100 * fmean(headline(task, score) for score in scores),
        100 * fmean(score.exact_match for score in scores),
    )


def _oracle(item: Item) -> Response:
    """The exact answer in the form that was asked for."""
    kind = TASKS[item.task].answer_kind
    answer = item.answer if isinstance(item.answer, str) else f"[{', '.join(item.answer)}]"
    shown = json.dumps(answer) if kind == "letter" else answer
    return Response(item_id=item.id, text=f'{{"answer": {shown}}}')
