"""What a request may be expected to take: the study's published averages, and a rough count."""

from __future__ import annotations

import csv
from functools import cache

from bench.models.catalogue import load
from bench.paths import resource
from bench.tasks import TASKS

CHARACTERS_PER_TOKEN = 3
"""A rough figure for prompts full of digits; the tokenizers themselves are not asked."""


def published_tokens(model: str, level: str) -> dict[str, float]:
    """Mean generated tokens per task of a catalogue model, empty where none are published.

    A level counts as published where one that sends the same request is: GPT-5's high is its
    maximal.
    """
    named = next((entry for entry in load().model if entry.name == model), None)
    if named is None or level not in named.levels:
        return {}
    for other, request in named.levels.items():
        if request == named.levels[level] and (named.display, other) in _published():
            return _published()[named.display, other]
    return {}


def published_configurations() -> tuple[tuple[str, str], ...]:
    """The paper's configurations as catalogue names and levels, in its order."""
    names = {entry.display: entry.name for entry in load().model}
    return tuple((names[display], level) for display, level in _published())


@cache
def _published() -> dict[tuple[str, str], dict[str, float]]:
    """Display name and level → task → mean generated tokens."""
    names = {task.display: task.name for task in TASKS.values()}
    path = resource("published") / "frontier_tokens.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row.pop("Model"), row.pop("Reasoning")): {
                names[header]: float(value) for header, value in row.items() if value
            }
            for row in csv.DictReader(file)
        }
