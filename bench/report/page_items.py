"""Every response as data of the page: columns of compact values, packed run by run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from bench.records import Answer, Item, Response, Score
from bench.report.digits import Parting, parting
from bench.report.measured import Measured
from bench.report.page_text import packed, shortened
from bench.scoring import Row
from bench.scoring.evidence import tool_mentions
from bench.scoring.labels import read_labels
from bench.scoring.paper_parse import NUMBER
from bench.tasks import TASKS
from bench.tasks.base import AnswerKind

LONGEST_TEXT = 2000
"""Characters of a response that the page shows, as long as all of them are within `_ALL_TEXTS`."""

_ALL_TEXTS = 16_000_000
_SHORTEST_CUT = 120
_LONGEST_PROMPT = 4000
_LONGEST_ANSWER = 200
_MOST_ELEMENTS = 200


class ItemData(NamedTuple):
    """The items and responses of all runs.

    items: the questions, each once, packed. runs: the responses of each run, packed.
    keys: a name per run for links into the page. responses: their number in all.
    text_limit: how many characters of a response are shown.
    """

    items: Markup
    runs: list[Markup]
    keys: list[str]
    responses: int
    text_limit: int


class _Judged(NamedTuple):
    """A row with what it takes to show it: its item's place, and the text that is truth to it."""

    place: int
    row: Row
    truth: Answer


def item_data(runs: Sequence[Measured]) -> ItemData:
    """All items and responses of the runs, ready for the page."""
    places: dict[tuple[str, str], int] = {}
    judged = [list(_judged(run, places)) for run in runs]
    items = {one.place: one.row.item for rows in judged for one in rows}
    limit = _text_limit(one.row.response for rows in judged for one in rows)
    return ItemData(
        packed(_item_columns([items[place] for place in range(len(items))])),
        [packed(_response_columns(rows, limit)) for rows in judged],
        _keys(runs),
        sum(map(len, judged)),
        limit,
    )


def _judged(run: Measured, places: dict[tuple[str, str], int]) -> Iterator[_Judged]:
    """The rows of a run; an item that is new to `places` gets the next place."""
    paper = run.run.protocol == "paper"
    labels = read_labels(run.run.dataset.path) if paper else {}
    dataset = run.run.dataset.manifest.sha256
    for row in (row for rows in run.run.rows.values() for row in rows):
        place = places.setdefault((dataset, row.item.id), len(places))
        yield _Judged(place, row, _truth(row, labels) if paper else row.item.answer)


def _truth(row: Row, labels: Mapping[str, str]) -> Answer:
    """What the paper protocol compares with: the label that the study had, if any."""
    own = row.response.extra.get("study_label") if row.response else None
    return own if isinstance(own, str) else labels.get(row.item.id, row.item.answer)


def _text_limit(responses: Iterable[Response | None]) -> int:
    """Characters kept of each text, so that a page of long answers still opens."""
    lengths = Counter(len(response.text) for response in responses if response)
    limit = LONGEST_TEXT
    while limit > _SHORTEST_CUT and _total(lengths, limit) > _ALL_TEXTS:
        limit //= 2
    return limit


def _total(lengths: Counter[int], limit: int) -> int:
    return sum(min(length, limit) * count for length, count in lengths.items())


def _keys(runs: Sequence[Measured]) -> list[str]:
    """The names of the run folders, numbered where two are alike."""
    keys: list[str] = []
    for run in runs:
        name = key = run.run.path.resolve().name
        number = 2
        while key in keys:
            key, number = f"{name}-{number}", number + 1
        keys.append(key)
    return keys


def _item_columns(items: Sequence[Item]) -> dict[str, object]:
    return {
        "id": [item.id for item in items],
        "task": [item.task for item in items],
        "prompt": [shortened(item.prompt, _LONGEST_PROMPT) for item in items],
        "truth": [_short_answer(item.answer) for item in items],
        "base10": [item.difficulty.base10 for item in items],
        "base2": [item.difficulty.base2 for item in items],
    }


def _response_columns(rows: Sequence[_Judged], limit: int) -> dict[str, object]:
    """Column → one value per response, or `{"same": value}` where all are equal."""
    partings = [_parting(one) for one in rows]
    columns: dict[str, list[object]] = {
        "label": [_label(one) for one in rows],
        "parsed": [_parsed(one) for one in rows],
        "shift": [parting.shift for parting in partings],
        "at": [parting.at for parting in partings],
    }
    for name, of_score in _OF_SCORE.items():
        columns[name] = [of_score(one.row.score) for one in rows]
    for name, of_response in _OF_RESPONSE.items():
        columns[name] = [r and of_response(r) for r in (one.row.response for one in rows)]
    texts = (one.row.response and one.row.response.text for one in rows)
    columns["text"] = [text and shortened(text, limit) for text in texts]
    compact = {name: _column(values) for name, values in columns.items()}
    return {"item": [one.place for one in rows], **compact}


def _column(values: list[object]) -> object:
    first = values[0] if values else None
    return {"same": first} if all(value == first for value in values) else values


def _parting(one: _Judged) -> Parting:
    parsed, kind = one.row.score.parsed, TASKS[one.row.item.task].answer_kind
    if parsed is None:
        return Parting(0, None)
    return parting(_of_kind(parsed, kind), _of_kind(one.truth, kind))


def _parsed(one: _Judged) -> Answer | None:
    parsed = one.row.score.parsed
    if parsed is None:
        return None
    return _short_answer(_of_kind(parsed, TASKS[one.row.item.task].answer_kind))


def _of_kind(answer: Answer, kind: AnswerKind) -> Answer:
    """An answer; that of a list task as its numbers, where it is still the text of a list."""
    if kind != "list" or not isinstance(answer, str):
        return answer
    return tuple(NUMBER.findall(answer)) or (answer,)


def _label(one: _Judged) -> Answer | None:
    """The truth that was compared with where it is not the item's own answer."""
    item = one.row.item
    truth = _of_kind(one.truth, TASKS[item.task].answer_kind)
    return None if truth == item.answer else _short_answer(truth)


def _short_answer(answer: Answer | None) -> Answer | None:
    if answer is None or isinstance(answer, str):
        return answer and shortened(answer, _LONGEST_ANSWER)
    kept = tuple(shortened(element, _LONGEST_ANSWER) for element in answer[:_MOST_ELEMENTS])
    more = len(answer) - len(kept)
    return (*kept, f"… {more:,} more numbers") if more else kept


_OF_SCORE: dict[str, Callable[[Score], object]] = {
    "status": lambda score: score.status,
    "right": lambda score: int(score.exact_match),
    "kind": lambda score: score.error_kind,
    "rule": lambda score: score.rule,
    "smape": lambda score: score.log_smape,
    "digits": lambda score: score.correct_digits,
}
_OF_RESPONSE: dict[str, Callable[[Response], object]] = {
    "length": lambda response: len(response.text),
    "thought": lambda response: len(response.reasoning_text or ""),
    "tool": lambda response: int(bool(tool_mentions(response.reasoning_text))),
    "finish": lambda response: response.finish_reason,
    "failure": lambda response: response.error and shortened(response.error.message, LONGEST_TEXT),
    "input": lambda response: response.usage.input,
    "reasoning": lambda response: response.usage.reasoning,
    "visible": lambda response: response.usage.visible,
    "generated": lambda response: response.usage.generated,
    "cost": lambda response: response.cost,
    "latency": lambda response: response.latency,
    "attempts": lambda response: response.attempts,
    "served": lambda response: response.served_model,
    "provider": lambda response: response.provider,
}
