"""All responses as data of the page: columns, compressed per run."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np
from markupsafe import Markup

from numbench.dataset.store import read_published_labels
from numbench.records import Answer, Item, Response
from numbench.reporting.digit_alignment import DigitAlignment, align_digits
from numbench.reporting.names import truncate_middle
from numbench.scoring import ScoredItem, ScoredRun
from numbench.scoring.paper_protocol import STUDY_NUMBER
from numbench.tasks import TASKS

MAX_TEXT_LENGTH = 500
MAX_REASONING_LENGTH = 2_000
"""Numbers of characters of an answer and of its reasoning; responses.jsonl has them in full."""

MAX_ANSWERS = 20_000
MAX_CHARACTERS = 16_000_000
"""A page has at most so many answers, with so many characters; more are sampled by question."""

_MAX_PROMPT_LENGTH = 4_000
_MAX_ANSWER_LENGTH = 200
_MAX_LIST_ELEMENTS = 200


class ItemData(NamedTuple):
    """The items and responses of all runs, or those to a random sample of the questions.

    items: the questions, each once, and runs: the responses of each run; both compressed.
    responses: the number of responses; total: of all runs.
    """

    items: Markup
    runs: list[Markup]
    responses: int
    total: int


class _Row(NamedTuple):
    """A scored item, with the index of its question and the answer it was compared with.

    given: the answer that was read, None without one. alignment: of both.
    """

    item_index: int
    scored: ScoredItem
    truth: Answer
    given: Answer | None
    alignment: DigitAlignment


def item_data(runs: Sequence[ScoredRun]) -> ItemData:
    """Return items and responses of the runs for the page, as many as it may have."""
    indices: dict[tuple[str, str], int] = {}
    items: dict[int, Item] = {}
    columns, responses = [], 0
    for run in _sample(runs):
        rows = _rows(run, indices)
        items |= {row.item_index: row.scored.item for row in rows}
        columns.append(_compress(_response_columns(rows)))
        responses += len(rows)
    of_items: dict[str, list[object]] = {
        name: [value(items[index]) for index in range(len(items))]
        for name, value in _ITEM_COLUMNS.items()
    }
    total = sum(len(rows) for run in runs for rows in run.rows.values())
    return ItemData(_compress(of_items), columns, responses, total)


def _sample(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Return runs with random questions whose answers fit the page, equally many of each task.

    A question is drawn with the answers of all runs; which are drawn depends on their ids only.
    """
    every = [
        ((run.dataset.manifest.sha256, task), rows)
        for run in runs
        for task, rows in run.rows.items()
    ]
    groups = list(dict.fromkeys(group for group, _ in every))
    items = 1 + max((int(rows.columns["item"].max(initial=-1)) for _, rows in every), default=-1)
    # The number of a question: the groups take turns. There are numbers without a question.
    numbers = [groups.index(group) + len(groups) * rows.columns["item"] for group, rows in every]
    counts, lengths = np.zeros((2, items * len(groups)), dtype=np.int64)
    hashes = np.full(len(counts), 1 << 32)
    for own, (_, rows) in zip(numbers, every, strict=True):
        hashes[own] = rows.columns["id_hash"]
        counts += np.bincount(own, minlength=len(counts))
    group_of = np.tile(np.arange(len(groups)), items)
    rank = np.empty_like(counts)
    rank[np.lexsort((hashes, group_of))] = np.tile(np.arange(items), len(groups))
    order = np.lexsort((group_of, rank))
    order = order[np.cumsum(counts[order]) <= MAX_ANSWERS]
    is_chosen = np.isin(np.arange(len(counts)), order)
    for own, (_, rows) in zip(numbers, every, strict=True):
        chosen = is_chosen[own]
        for number, row in zip(own[chosen].tolist(), rows.select(chosen), strict=True):
            lengths[number] += _length(row.response) if row.response else len(row.item.prompt)
    is_chosen[order[np.cumsum(lengths[order]) > MAX_CHARACTERS]] = False
    parts = (rows.select(is_chosen[own]) for own, (_, rows) in zip(numbers, every, strict=True))
    return [run._replace(rows={task: next(parts) for task in run.rows}) for run in runs]


def _length(response: Response) -> int:
    """Return about how many characters of a response the page has."""
    reasoning = min(len(response.reasoning_text or ""), MAX_REASONING_LENGTH)
    return 200 + min(len(response.text), MAX_TEXT_LENGTH) + reasoning + len(_turns(response) or "")


def _turns(response: Response) -> str | None:
    """Return the texts before the last one, and each call with its result, one below the other."""
    lines = [
        line
        for reply in (*response.turns, response)
        for line in (
            reply.text.strip() * (reply is not response),
            *(f"{c.arguments} → {c.result or 'not carried out'}" for c in reply.calls),
        )
    ]
    text = "\n".join(filter(None, lines))
    return truncate_middle(text, MAX_REASONING_LENGTH) or None


def _compress(value: object) -> Markup:
    """Return JSON, deflated, in base64."""
    return Markup(base64.b64encode(zlib.compress(msgspec.json.encode(value), 6)).decode())


def _rows(run: ScoredRun, indices: dict[tuple[str, str], int]) -> list[_Row]:
    """Return the rows of a run; an item is added to `indices` with the next index."""
    # The paper protocol compares with the label of the study, if it has one.
    labels = read_published_labels(run.dataset.path) if run.protocol == "paper" else {}
    dataset = run.dataset.manifest.sha256
    known = []
    for row in chain.from_iterable(run.rows.values()):
        item, parsed = row.item, row.score.parsed
        index = indices.setdefault((dataset, item.id), len(indices))
        label: Answer = labels.get(item.id, item.answer)
        truth = _as_answer_kind(label, item) if run.protocol == "paper" else item.answer
        given = None if parsed is None else _as_answer_kind(parsed, item)
        alignment = DigitAlignment(0, None) if given is None else align_digits(given, truth)
        known.append(_Row(index, row, truth, given, alignment))
    return known


def _response_columns(rows: Sequence[_Row]) -> dict[str, object]:
    """Return the columns of the responses of a run; one value stands for equal ones."""
    columns: dict[str, list[object]] = {
        name: [value(row) for row in rows] for name, value in _COLUMNS.items()
    }
    compact = {
        name: {"same": values[0]} if values.count(values[0]) == len(values) else values
        for name, values in columns.items()
        if values
    }
    return {"item": [row.item_index for row in rows], **compact}


def _as_answer_kind(answer: Answer, item: Item) -> Answer:
    """Return an answer; for a list task as its numbers, if it is still text."""
    if TASKS[item.task].answer_kind != "list" or not isinstance(answer, str):
        return answer
    return tuple(STUDY_NUMBER.findall(answer)) or (answer,)


def _short_answer(answer: Answer) -> Answer:
    if isinstance(answer, str):
        return truncate_middle(answer, _MAX_ANSWER_LENGTH)
    elements = tuple(
        truncate_middle(element, _MAX_ANSWER_LENGTH) for element in answer[:_MAX_LIST_ELEMENTS]
    )
    omitted = len(answer) - len(elements)
    return (*elements, f"… {omitted:,} more numbers") if omitted else elements


_ITEM_COLUMNS: dict[str, Callable[[Item], object]] = {
    "id": lambda item: item.id,
    "task": lambda item: item.task,
    "prompt": lambda item: truncate_middle(item.prompt, _MAX_PROMPT_LENGTH),
    "truth": lambda item: _short_answer(item.answer),
    "base10": lambda item: item.difficulty.base10,
}


def _of_response(value: Callable[[Response], object]) -> Callable[[_Row], object]:
    return lambda row: row.scored.response and value(row.scored.response)


_COLUMNS: dict[str, Callable[[_Row], object]] = {
    "parsed": lambda row: row.given and _short_answer(row.given),
    "label": lambda row: None if row.truth == row.scored.item.answer else _short_answer(row.truth),
    "shift": lambda row: row.alignment.shift,
    "first_difference": lambda row: row.alignment.first_difference,
    "sample": lambda row: row.scored.sample,
    "status": lambda row: row.scored.score.status,
    "correct": lambda row: int(row.scored.score.exact_match),
    "kind": lambda row: row.scored.score.error_kind,
    "smape": lambda row: row.scored.score.log_smape,
    "digits": lambda row: row.scored.score.correct_digits,
    "text": _of_response(lambda known: truncate_middle(known.text, MAX_TEXT_LENGTH)),
    "reasoning": _of_response(
        lambda known: (
            known.reasoning_text and truncate_middle(known.reasoning_text, MAX_REASONING_LENGTH)
        )
    ),
    "turns": _of_response(_turns),
    "finish": _of_response(lambda known: known.finish_reason),
    "failure": _of_response(
        lambda known: known.error and truncate_middle(known.error.message, MAX_TEXT_LENGTH)
    ),
    "generated": _of_response(lambda known: known.usage.generated),
    "cost": _of_response(lambda known: known.cost and float(f"{known.cost:.4g}")),
    "latency": _of_response(lambda known: known.latency and float(f"{known.latency:.3g}")),
    "served": _of_response(lambda known: known.served_model),
}
