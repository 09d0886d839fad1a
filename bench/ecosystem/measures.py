"""What another tool learns of a score, and what it says to a model: the same as in our own runs."""

from __future__ import annotations

from collections.abc import Sequence

from bench.models.base import Message
from bench.records import Answer, Item, Score
from bench.runner.few_shot import turns
from bench.runner.selection import PROMPTS
from bench.scoring import headline
from bench.tasks import TASKS
from bench.tasks.phrasing import prompts

MEASURES = ("log_smape", "exact_match", "compliance")
"""Means of these, 0 … 1, are what other tools report for each task.

log_smape is exact match in the comparison tasks, as in the table of that name. compliance is 1
where the response has the form that was asked for.
"""


def measures(item: Item, score: Score) -> dict[str, float]:
    """The value of each of `MEASURES`, 0 … 1."""
    return {
        "log_smape": headline(item.task, score),
        "exact_match": float(score.exact_match),
        "compliance": float(score.rule == 1),
    }


def opening(task: str, shown: Sequence[Item] = ()) -> tuple[Message, ...]:
    """What comes before a question of `task`: its system prompt, then worked examples."""
    return Message("system", system(task)), *turns(shown)


def system(task: str) -> str:
    """The system prompt of `task`."""
    return prompts(PROMPTS).system(TASKS[task].system_prompt)


def written(answer: Answer) -> str:
    """An answer as text with every digit; a list as `[1.5, 2]`."""
    return answer if isinstance(answer, str) else f"[{', '.join(answer)}]"
