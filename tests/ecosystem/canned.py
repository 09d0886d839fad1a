"""Canned responses to the first items of v1, and the run of ours that says what they score."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.dataset.store import Dataset, open_dataset
from bench.journal import write_run
from bench.records import Item, Response, RunInfo, Usage
from bench.runner.few_shot import turns
from bench.scoring import ScoredRun, score_run
from bench.tasks.phrasing import prompts

LIMIT = 6
"""Items per task: one for each kind of response."""


def _seventh_digit_wrong(item: Item) -> str:
    """A number that agrees with the truth in six digits; a right answer where that is no number."""
    if not isinstance(item.answer, str) or not item.answer.strip("-0.").isascii():
        return right(item)
    digits = [place for place, sign in enumerate(item.answer) if sign.isdigit()]
    leading = next((k for k, place in enumerate(digits) if item.answer[place] != "0"), None)
    if leading is None or len(digits) < leading + 7:
        return right(item)
    place = digits[leading + 6]
    changed = "1" if item.answer[place] != "1" else "2"
    return f'{{"answer": {item.answer[:place]}{changed}{item.answer[place + 1 :]}}}'


def right(item: Item) -> str:
    return turns([item])[1].content


_KINDS: tuple[Callable[[Item], str], ...] = (
    right,
    lambda item: f"I reckon:\n```json\n{right(item)}\n```",
    _seventh_digit_wrong,
    lambda item: '{"answer": 3}',
    lambda item: "I cannot say.",
    lambda item: "",
)


def source() -> Dataset:
    return open_dataset("v1")


def texts() -> dict[str, str]:
    """A response to each of the first items, by the item's prompt."""
    return {
        item.prompt: kind(item)
        for items in source().by_task.values()
        for item, kind in zip(items[:LIMIT], _KINDS, strict=True)
    }


def run(folder: Path) -> Path:
    """A run folder of ours with the same responses."""
    said, data = texts(), source()
    folder.mkdir(parents=True)
    info = RunInfo(
        model="mockllm/model",
        display="Mock",
        reasoning="none",
        dataset=data.ref(folder),
        prompt=prompts().ref,
        tasks=data.tasks,
        limit=LIMIT,
        settings={"temperature": 0.0},
        versions={"numbench": "0"},
        created="2026-01-31T12:00:00Z",
    )
    items = [item for group in data.by_task.values() for item in group[:LIMIT]]
    responses = [
        Response(
            item_id=item.id,
            text=said[item.prompt],
            finish_reason="stop",
            usage=Usage(input=7, reasoning=2, visible=3, generated=5, source="reported"),
            latency=1.5,
            at="2026-01-31T12:00:10.500+00:00",
        )
        for item in items
    ]
    write_run(folder, info, responses)
    return folder


def scored(folder: Path) -> ScoredRun:
    return score_run(run(folder))
