"""The scored answers of one task of a run, as columns: a report may be about a million answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, overload
from zlib import crc32

import numpy as np
import numpy.typing as npt

from numbench.core.jsonl import StoredRecords
from numbench.journal.run_folder import Run
from numbench.records import Item, ProtocolName, Response, Score, request_id
from numbench.scoring import paper_protocol
from numbench.scoring.error_kinds import UNANSWERED_STATUSES
from numbench.scoring.exact_protocol import score_exact, score_lenient
from numbench.stats.design import Column
from numbench.tasks import TASKS
from numbench.tasks.base import FORMS
from numbench.thinking_text import move_thinking

_SCORERS = {"exact": score_exact, "lenient": score_lenient}

_ROWS_AT_ONCE = 1_000
"""Work in turns on so many rows is faster than on single ones, whose steps share no cached code."""

_DEFECTS = ("empty", "truncated", "refused")
"""What an answer is that gives the model a second chance (`--retry`)."""

Mask = npt.NDArray[np.bool_]


class ScoredItem(NamedTuple):
    """One sample of an item of a run, with its response (None if there is none) and score."""

    item: Item
    response: Response | None
    score: Score

    @property
    def sample(self) -> int:
        """The index of the sample, 0 for the first."""
        return self.score.sample

    @property
    def is_answered(self) -> bool:
        """Whether the model returned any output for the item."""
        return self.score.status not in UNANSWERED_STATUSES


_SCORE_COLUMNS = [
    ("status", "O"), ("exact_match", "?"), ("log_smape", "f8"), ("parsed", "O"), ("rule", "O"),
    ("error_kind", "O"), ("correct_digits", "f8"),
]  # fmt: skip
_SCORE_NAMES = [name for name, _ in _SCORE_COLUMNS]
_COLUMNS = np.dtype(
    [
        ("item", "i4"), ("sample", "i4"), ("offset", "i8"), ("id_hash", "u4"), ("operands", "i8"),
        ("difficulty", "f8"), ("tokens", "f8"), ("cost", "f8"), ("latency", "f8"),
        ("is_cut_off", "?"), ("is_retried", "?"), ("late_price", "O"), *_SCORE_COLUMNS,
    ]
)  # fmt: skip


class TaskSource(NamedTuple):
    """Where the questions and responses of one task of a run are, and how they are scored.

    items: of the dataset. ask: returns an item as it was asked. price: returns a response with its
    cost, if that became known since it was stored. labels: of the paper, by item id.
    """

    task: str
    items: Sequence[Item]
    ask: Callable[[Item], Item]
    run: Run
    price: Callable[[Response], Response]
    protocol: ProtocolName
    labels: Mapping[str, str]

    def asked(self, indices: Iterable[int]) -> Iterator[Item]:
        """Yield items as they were asked, by their indices in the dataset."""
        if isinstance(self.items, StoredRecords):
            return map(self.ask, self.items.read(indices))
        return (self.ask(self.items[index]) for index in indices)

    def responses(self, offsets: Sequence[int]) -> Iterator[Response | None]:
        """Yield the responses at some offsets, as they arrived; None for -1."""
        stored = self.run.responses.read(offset for offset in offsets if offset >= 0)
        return (next(stored) if offset >= 0 else None for offset in offsets)

    def shown(self, raw: Response | None) -> Response | None:
        """Return a response with its cost and its thinking apart, unless others recorded it."""
        is_measured = raw is not None and self.run.info.source == "measured"
        return move_thinking(self.price(raw)) if raw and is_measured else raw

    def score(self, item: Item, raw: Response | None) -> Score:
        """Return the score of a response as it arrived."""
        if self.protocol == "paper":
            return paper_protocol.score_paper(item, self.shown(raw), self.labels.get(item.id))
        return _SCORERS[self.protocol](item, raw)

    def tokens(self, response: Response) -> float | None:
        """Return the token count that the protocol averages."""
        if self.protocol == "paper":
            return paper_protocol.study_token_count(self.run.info, response)
        return response.usage.generated


class ScoredRows(Sequence[ScoredItem]):
    """The scored samples of the items of one task of a run.

    Questions and responses are read from their files when a row is asked for. What is counted is in
    `columns`, a structured array of shape (rows,), where an unknown number is NaN. item: index
    within the task of the dataset. offset: of the response in the journal, -1 without one.
    id_hash: CRC-32 of the item's id. operands: their hash. tokens: those that the protocol
    averages. late_price: origin of a price that was unknown when the answer was stored, or None.
    is_cut_off: at the token limit. is_retried: the model had a second chance after an
    answer that is none. The others are fields of `Score`.
    """

    def __init__(self, source: TaskSource, columns: npt.NDArray[Any]) -> None:
        self._source, self.columns = source, columns

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> ScoredItem: ...
    @overload
    def __getitem__(self, index: slice) -> ScoredRows: ...
    def __getitem__(self, index: int | slice) -> ScoredItem | ScoredRows:
        if isinstance(index, int):
            return next(iter(self.select([range(len(self))[index]])))
        return ScoredRows(self._source, self.columns[index])

    def __iter__(self) -> Iterator[ScoredItem]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            columns = self.columns[start : start + _ROWS_AT_ONCE]
            items = list(self._source.asked(columns["item"].tolist()))
            responses = list(self._source.responses(columns["offset"].tolist()))
            scores = map(self._score, items, columns[["sample", *_SCORE_NAMES]].tolist())
            yield from map(ScoredItem, items, map(self._source.shown, responses), scores)

    def _score(self, item: Item, cells: tuple[Any, ...]) -> Score:
        named = zip(("sample", *_SCORE_NAMES), cells, strict=True)
        # Only an unknown number, NaN, differs from itself.
        fields: dict[str, Any] = {name: cell if cell == cell else None for name, cell in named}
        if fields["correct_digits"] is not None:
            fields["correct_digits"] = int(fields["correct_digits"])
        return Score(item_id=item.id, protocol=self._source.protocol, **fields)

    def select(self, chosen: npt.NDArray[Any] | Sequence[int]) -> ScoredRows:
        """Return some of the rows, by a mask or by their indices."""
        return ScoredRows(self._source, self.columns[chosen])

    def rescored(self, chosen: Mask, score: Callable[[Item, Response | None], Score]) -> ScoredRows:
        """Return the rows with other scores of the chosen ones."""
        columns = self.columns.copy()
        scores = (score(item, response) for item, response, _ in self.select(chosen))
        columns[_SCORE_NAMES][chosen] = np.fromiter(map(_score_cells, scores), _SCORE_COLUMNS)
        return ScoredRows(self._source, columns)

    @property
    def is_answered(self) -> Mask:
        """Whether the model returned any output, row by row."""
        return np.asarray(~np.isin(self.columns["status"], [*UNANSWERED_STATUSES]))

    @property
    def is_read(self) -> Mask:
        """Whether an answer was read, row by row."""
        return np.asarray(self.columns["status"] == "ok")

    @property
    def headline(self) -> Column:
        """The scores in the task's headline metric, 0 to 1."""
        matches, known = self.columns["exact_match"].astype(np.float64), self.columns["log_smape"]
        if TASKS[self._source.task].metric != "log_smape":
            return matches
        return np.where(np.isnan(known), matches, known)

    @property
    def by_value(self) -> Column:
        """1 for the correct value, also in another form than requested; NaN without forms."""
        if TASKS[self._source.task].answer_kind not in FORMS:
            return np.full(len(self), math.nan)
        is_other_form = self.columns["error_kind"] == "form"
        return np.where(self.columns["exact_match"] | is_other_form, 1.0, 0.0)

    @property
    def categories(self) -> Iterator[str]:
        """The category of each score, as of `error_kinds.categorize`."""
        cells = self.columns[["exact_match", "error_kind", "status"]].tolist()
        return ("right" if match else kind or status for match, kind, status in cells)

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(np.diff(self.columns["item"], prepend=-1))

    @property
    def items(self) -> ScoredRows:
        """The first row of each item."""
        return self.select(self._starts)

    @property
    def samples_by_item(self) -> npt.NDArray[np.int64]:
        """The number of rows of each item."""
        return np.diff(self._starts, append=len(self))

    @property
    def item_numbers(self) -> npt.NDArray[np.int64]:
        """The position of each row's item in `items`."""
        counts = self.samples_by_item
        return np.repeat(np.arange(len(counts)), counts)

    def item_means(self, values: Column, of_all: bool = False) -> Column:
        """Return the mean of the known values of each item, given by row; NaN without any.

        of_all: NaN also if any is unknown.
        """
        if len(self._starts) == len(self):
            return values
        groups = np.split(values, self._starts[1:])
        known = (group[of_all | ~np.isnan(group)].tolist() for group in groups)
        return np.array([math.fsum(each) / len(each) if each else math.nan for each in known])


_score_cells = attrgetter(*_SCORE_NAMES)


def score_rows(source: TaskSource) -> ScoredRows:
    """Score the items of a task that a run includes."""
    included = source.run.info.select_items(range(len(source.items)))
    starts = range(0, len(included), _ROWS_AT_ONCE)
    parts = [_score_part(source, included[start : start + _ROWS_AT_ONCE]) for start in starts]
    return ScoredRows(source, np.concatenate([np.empty(0, _COLUMNS), *parts]))


def _score_part(source: TaskSource, indices: Sequence[int]) -> npt.NDArray[Any]:
    """Return the columns of some items, all samples of each."""
    asked = zip(indices, source.asked(indices), strict=True)
    samples = range(source.run.info.samples)
    rows = [(index, item, sample) for index, item in asked for sample in samples]
    items = [item for _, item, _ in rows]
    columns = np.empty(len(rows), _COLUMNS)
    columns["item"] = [index for index, _, _ in rows]
    columns["sample"] = [sample for _, _, sample in rows]
    columns["id_hash"] = [crc32(item.id.encode()) for item in items]
    columns["operands"] = [hash(item.operands) for item in items]
    columns["difficulty"] = [item.difficulty.base10 for item in items]
    stored = source.run.responses.offsets
    offsets = [stored.get(request_id(item.id, sample), -1) for _, item, sample in rows]
    columns["offset"] = offsets
    responses = list(source.responses(offsets))
    columns["tokens"] = [each and source.tokens(each) for each in responses]
    priced = [each and source.price(each) for each in responses]
    columns["cost"] = [each and each.cost for each in priced]
    columns["late_price"] = [
        new.cost_source if new and new is not old else None
        for new, old in zip(priced, responses, strict=True)
    ]
    columns["latency"] = [each and each.latency for each in responses]
    columns["is_cut_off"] = [bool(each and each.finish_reason == "length") for each in responses]
    columns["is_retried"] = [bool(each and each.retry_of in _DEFECTS) for each in responses]
    scores = map(source.score, items, responses)
    columns[_SCORE_NAMES] = np.fromiter(map(_score_cells, scores), _SCORE_COLUMNS)
    return columns


def item_groups(rows: Iterable[ScoredItem]) -> list[list[ScoredItem]]:
    """Return the samples of each item. Those of one item must be next to each other in `rows`."""
    return [list(group) for _, group in groupby(rows, key=attrgetter("item.id"))]
