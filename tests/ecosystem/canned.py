"""Canned responses to the first items of a dataset, and a numbench run with the same responses."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from numbench.dataset.store import Dataset
from numbench.journal.run_folder import write_run
from numbench.records import Item, Response, Usage
from numbench.runner.few_shot import example_messages
from numbench.scoring import ScoredRun, score_run
from numbench.tasks.prompts import load_prompt_set
from tests.support.runs import INFO

LIMIT = 6
"""Items per task, one for each kind of response."""


def _seventh_digit_wrong(item: Item) -> str:
    """Change the seventh digit of a number; return other answers unchanged."""
    if not isinstance(item.answer, str) or not item.answer.strip("-0.").isascii():
        return correct(item)
    digits = [index for index, sign in enumerate(item.answer) if sign.isdigit()]
    leading = next((k for k, index in enumerate(digits) if item.answer[index] != "0"), None)
    if leading is None or len(digits) < leading + 7:
        return correct(item)
    index = digits[leading + 6]
    changed = "1" if item.answer[index] != "1" else "2"
    return f'{{"answer": {item.answer[:index]}{changed}{item.answer[index + 1 :]}}}'


def correct(item: Item) -> str:
    """Return the exact answer in the requested format."""
    return example_messages([item])[1].content


_KINDS: tuple[Callable[[Item], str], ...] = (
    correct,
    lambda item: f"The result:\n```json\n{correct(item)}\n```",
    _seventh_digit_wrong,
    lambda item: '{"answer": 3}',
    lambda item: "I cannot say.",
    lambda item: "",
)


def texts(dataset: Dataset) -> dict[str, str]:
    """Return a response to each of the first items of every task, by prompt."""
    return {
        item.prompt: kind(item)
        for items in dataset.by_task.values()
        for item, kind in zip(items[:LIMIT], _KINDS, strict=True)
    }


def write_canned_run(folder: Path, dataset: Dataset) -> Path:
    """Write a numbench run with the same responses."""
    responses_by_prompt = texts(dataset)
    folder.mkdir(parents=True)
    prompt = load_prompt_set().ref(dataset.tasks)
    info = replace(INFO, model="mockllm/model", dataset=dataset.ref(folder), prompt=prompt,
                   tasks=dataset.tasks, limit=LIMIT, settings={"temperature": 0.0})  # fmt: skip
    items = [item for group in dataset.by_task.values() for item in group[:LIMIT]]
    responses = [
        Response(
            item_id=item.id,
            text=responses_by_prompt[item.prompt],
            finish_reason="stop",
            usage=Usage(input=7, reasoning=2, visible=3, generated=5, source="reported"),
            latency=1.5,
            at="2026-01-31T12:00:10.500+00:00",
        )
        for item in items
    ]
    write_run(folder, info, responses)
    return folder


def scored_run(folder: Path, dataset: Dataset) -> ScoredRun:
    """Write the run and score it."""
    return score_run(write_canned_run(folder, dataset))
