"""Metric values and prompts for other tools, identical to those of numbench's own runs."""

from __future__ import annotations

from collections.abc import Sequence

from numbench.dataset.store import Dataset
from numbench.models.base import Message
from numbench.records import Answer, Item, Score
from numbench.runner.few_shot import messages_before
from numbench.scoring import has_requested_format, headline_score
from numbench.tasks.prompts import load_prompt_set

METRIC_NAMES = ("log_smape", "exact_match", "compliance")
"""Metrics whose means, 0 … 1, other tools report for each task.

log_smape is exact match in the comparison tasks, as in the table of that name. compliance is 1 if
the response has the requested format.
"""


def metric_values(item: Item, score: Score, allows_working: bool = False) -> dict[str, float]:
    """Return the value of each of `METRIC_NAMES`, 0 … 1.

    allows_working: whether the prompt allows text before the answer.
    """
    return {
        "log_smape": headline_score(item.task, score),
        "exact_match": float(score.exact_match),
        "compliance": float(has_requested_format(score, allows_working)),
    }


def prompt_prefix(task: str, examples: Sequence[Item] = ()) -> tuple[Message, ...]:
    """Return the messages before a question of the set `paper`: system prompt and examples."""
    return messages_before(load_prompt_set(), task, examples)


def system_prompt(task: str) -> str:
    """Return the system prompt of a task in the set `paper`."""
    return load_prompt_set().system_prompt(task) or ""


def answer_text(answer: Answer) -> str:
    """Return an answer as text with every digit; a list as `[1.5, 2]`."""
    return answer if isinstance(answer, str) else f"[{', '.join(answer)}]"


def dataset_version(dataset: Dataset) -> str:
    """Return name and content hash of a dataset: `v1@3f9c2a`."""
    return f"{dataset.name}@{dataset.manifest.sha256[:6]}"
