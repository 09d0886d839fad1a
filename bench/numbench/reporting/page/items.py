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
from numbench.reporting.digit_alignment import align_digits
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


def item_data(runs: Sequence[ScoredRun]) -> ItemData:
    """Return items and responses of the runs for the page, as many as it may have."""
    # Runs with other wordings or notations ask other questions about one item.
    indices: dict[tuple[str, str, str], int] = {}
    items: dict[int, Item] = {}
    columns, responses = [], 0
    for run in _sample(runs):
        dataset = run.dataset.manifest.sha256
        rows = list(chain.from_iterable(run.rows.values()))
        keys = [(dataset, row.item.id, row.item.prompt) for row in rows]
        numbers = [indices.setdefault(key, len(indices)) for key in keys]
        items |= {number: row.item for number, row in zip(numbers, rows, strict=True)}
        columns.append(_compress({"item": numbers, **_response_columns(run, rows)}))
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


def _response_columns(run: ScoredRun, rows: Sequence[ScoredItem]) -> dict[str, object]:
    """Return the columns of the responses of a run; one value stands for equal ones."""
    is_paper = run.protocol == "paper"
    # The paper protocol compares with the label of the study, if it has one.
    labels = read_published_labels(run.dataset.path) if is_paper else {}
    cells = []
    for row in rows:
        label = _as_answer_kind(labels.get(row.item.id, row.item.answer), row.item)
        cells.append(_cells(row, label if is_paper else row.item.answer))
    columns = {name: [each[name] for each in cells] for name in (cells[0] if cells else ())}
    return {
        name: {"same": values[0]} if values.count(values[0]) == len(values) else values
        for name, values in columns.items()
    }


def _cells(row: ScoredItem, truth: Answer) -> dict[str, object]:
    """Return what the page has of a response. truth: the answer that it is compared with."""
    item, response, score = row
    given = None if score.parsed is None else _as_answer_kind(score.parsed, item)
    shift, difference = (0, None) if given is None else align_digits(given, truth)
    of_response = _response_cells(response or Response(item_id=item.id))
    return {
        "parsed": given and _short_answer(given),
        "label": None if truth == item.answer else _short_answer(truth),
        "shift": shift,
        "first_difference": difference,
        "sample": score.sample,
        "status": score.status,
        "correct": int(score.exact_match),
        "kind": score.error_kind,
        "smape": score.log_smape,
        "digits": score.correct_digits,
        **(of_response if response else dict.fromkeys(of_response)),
    }


def _response_cells(response: Response) -> dict[str, object]:
    reasoning, error = response.reasoning_text, response.error
    return {
        "text": truncate_middle(response.text, MAX_TEXT_LENGTH),
        "reasoning": reasoning and truncate_middle(reasoning, MAX_REASONING_LENGTH),
        "turns": _turns(response),
        "finish": response.finish_reason,
        "failure": error and truncate_middle(error.message, MAX_TEXT_LENGTH),
        "generated": response.usage.generated,
        "cost": response.cost and float(f"{response.cost:.4g}"),
        "latency": response.latency and float(f"{response.latency:.3g}"),
        "served": response.served_model,
    }


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
