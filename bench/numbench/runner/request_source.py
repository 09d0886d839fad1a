"""What a run asks: the open questions of a dataset, or the rounds of a horizon measurement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from numbench.errors import bad_input_at
from numbench.horizon.items import ItemSequences, parse_id
from numbench.horizon.sizes import size_text
from numbench.journal.run_folder import read_rounds, read_run
from numbench.journal.writer import Journal
from numbench.records import Completion, ItemSample, Round
from numbench.runner.progress import NO_VALUE, SEPARATOR, ScoreCallback

if TYPE_CHECKING:
    from numbench.horizon.measurement import TaskMeasurement

_T = TypeVar("_T")


class DatasetRequests:
    """The requests of a run on a dataset, all of which may be sent at once.

    open_count: number of requests without a result. skipped: of those that earlier calls completed.
    """

    def __init__(self, requests: Sequence[ItemSample], open_requests: Sequence[ItemSample]) -> None:
        self._requests, self._open = requests, list(open_requests)
        self.open_count = len(self._open)
        self.skipped = len(requests) - len(self._open)

    def start(self) -> list[ItemSample]:
        """Return the requests that may be sent now."""
        return self._open

    def requests_so_far(self) -> Iterable[ItemSample]:
        """Return all requests of the run, completed ones included."""
        return self._requests

    def record(self, requested: ItemSample, completion: Completion) -> list[ItemSample]:
        """Take a result into account, which is on disk; return the requests that it unlocks."""
        self.open_count -= 1
        return []

    def progress_fields(self) -> dict[str, Any]:
        """Return nothing."""
        return {}


class HorizonRequests:
    """The requests of a measurement, with the tasks in turn.

    A round is on disk before it is asked, and the next round of a task begins when all of its
    answers are known; an item that fails for a while keeps its round open until the next call.
    """

    def __init__(
        self,
        measurements: Mapping[str, TaskMeasurement],
        items: ItemSequences,
        samples: int,
        judge: ScoreCallback,
        journal: Journal,
    ) -> None:
        """Continue the measurement in the run folder of the journal."""
        self._measurements, self._items, self._samples = measurements, items, samples
        self._judge, self._journal = judge, journal
        self._answers: dict[str, Completion] = {}
        with bad_input_at(journal.folder, ValueError):
            self._resume()
        self.skipped = len(self._answers)

    @property
    def open_count(self) -> int:
        """The number of open requests, at least one for each task that is not complete."""
        return sum(
            max(1, len(self._open_requests(task)))
            for task, measurement in self._measurements.items()
            if measurement.stop_reason is None
        )

    def start(self) -> list[ItemSample]:
        """Return the open requests of the present rounds, or of those that follow them."""
        tasks = [[*self._open_requests(task), *self._advance(task)] for task in self._measurements]
        return list(interleave(tasks))

    def requests_so_far(self) -> list[ItemSample]:
        """Return all requests that have begun, in the order of their rounds, task by task."""
        requests = []
        for measurement in self._measurements.values():
            open_items = set(measurement.open_items)
            for item_id in (each for items in measurement.rounds for each in items):
                if item_id in open_items or measurement.has_outcome(item_id):
                    requests += self._requests_for(item_id)
        return requests

    def record(self, requested: ItemSample, completion: Completion) -> list[ItemSample]:
        """Take an answer into account, and return the next round if it completes one."""
        self._keep(requested.id, completion)
        self._complete_item(requested.item.id, requested.task)
        return self._advance(requested.task)

    def progress_fields(self) -> dict[str, Any]:
        """Return the fields of RunProgress about the estimates from the complete rounds."""
        measurements = self._measurements
        return {
            "horizons": {task: _describe(each) for task, each in measurements.items()},
            "complete": sum(each.stop_reason is not None for each in measurements.values()),
        }

    def _resume(self) -> None:
        """Take earlier calls into account. Raises ValueError for an id that names no item."""
        responses = read_run(self._journal.folder).responses.values()
        for response in responses:
            self._keep(response.request_id, response)
        without_round = dict.fromkeys(response.item_id for response in responses)
        for round_ in read_rounds(self._journal.folder):
            for item_id in round_.items:
                without_round.pop(item_id, None)
            if round_.task in self._measurements:
                self._add_round(round_.task, round_.items)
        # The lines of their rounds were damaged.
        for task in self._measurements:
            if items := [item_id for item_id in without_round if parse_id(item_id).task == task]:
                self._begin_round(task, items)

    def _begin_round(self, task: str, items: Sequence[str]) -> None:
        self._journal.record(Round(task=task, items=tuple(items)))
        self._add_round(task, items)

    def _add_round(self, task: str, items: Sequence[str]) -> None:
        self._measurements[task].add_round(items)
        for item_id in items:
            self._complete_item(item_id, task)

    def _advance(self, task: str) -> list[ItemSample]:
        """Begin the next round of a task, unless one is open or the measurement is complete."""
        unlocked: list[ItemSample] = []
        while items := self._measurements[task].next_round():
            self._begin_round(task, items)
            unlocked += self._open_requests(task)
        return unlocked

    def _open_requests(self, task: str) -> list[ItemSample]:
        """Return the requests of the present round of a task without a final result."""
        items = self._measurements[task].open_items
        requests = (request for item_id in items for request in self._requests_for(item_id))
        return [request for request in requests if request.id not in self._answers]

    def _keep(self, id_: str, completion: Completion) -> None:
        if completion.is_final:
            self._answers[id_] = completion

    def _complete_item(self, item_id: str, task: str) -> None:
        """Record the outcome of an item once all its samples have a final result."""
        # It imports NumPy, which runs on datasets do not need.
        from numbench.horizon.measurement import item_outcome

        item = self._items.by_id(item_id)
        outcome = item_outcome(item, self._samples, self._answers, self._judge)
        if outcome is not None:
            self._measurements[task].record(item_id, outcome)

    def _requests_for(self, item_id: str) -> list[ItemSample]:
        item = self._items.by_id(item_id)
        return [ItemSample(item, sample) for sample in range(self._samples)]


def _describe(measurement: TaskMeasurement) -> str:
    sizes = measurement.design.sizes
    h50, low, high = (size_text(size, sizes[0], sizes[-1]) for size in measurement.estimate)
    estimate = f"h50 {h50} [{low}, {high}]" if measurement.design.completed else f"h50 {NO_VALUE}"
    stop = measurement.stop_reason
    return SEPARATOR.join((estimate, f"complete ({stop})")) if stop else estimate


def interleave(groups: Iterable[Sequence[_T]]) -> Iterator[_T]:
    """Yield one element of each group in turn, so that a partial run covers every task."""
    for group in zip_longest(*groups):
        yield from (element for element in group if element is not None)


RequestSource = DatasetRequests | HorizonRequests
"""What may be asked now, and what an answer unlocks."""
