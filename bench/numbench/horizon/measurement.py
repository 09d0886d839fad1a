"""The measurement of one task: its rounds of items, and what is known of their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from numbench.horizon import Limits, StopReason
from numbench.horizon.adaptive import AdaptiveDesign
from numbench.horizon.estimate import SizeOutcome
from numbench.horizon.items import ItemAddress, ItemSequences, parse_id
from numbench.horizon.sizes import answer_tokens, prompt_tokens
from numbench.records import Completion, Item, request_id
from numbench.tasks.base import Task


class Rejected(NamedTuple):
    """The outcome of an item that can never be answered."""


ItemOutcome = SizeOutcome | Rejected


def item_outcome(
    item: Item,
    samples: int,
    results: Mapping[str, Completion],
    judge: Callable[[Item, Completion], bool | None],
) -> ItemOutcome | None:
    """Return the outcome of an item; None until all of its samples are among the final `results`.

    Samples that were rejected are left out; an item is rejected if all of them are. An answer that
    the token limit cut off counts as truncated unless it is right. judge: whether an answer is
    right.
    """
    completions = [results.get(request_id(item.id, sample)) for sample in range(samples)]
    if None in completions:
        return None
    answers = [each for each in completions if each is not None and each.error is None]
    if not answers:
        return Rejected()
    right = [bool(judge(item, answer)) for answer in answers]
    tokens = [n for answer in answers if (n := answer.usage.generated) is not None]
    prompts = [n for answer in answers if (n := answer.usage.input) is not None]
    pairs = zip(answers, right, strict=True)
    return SizeOutcome(
        size=parse_id(item.id).size,
        right=sum(right) / len(answers),
        total=len(answers),
        truncated=sum(each.finish_reason == "length" and not ok for each, ok in pairs),
        tokens=round(sum(tokens) / len(tokens)) if tokens else None,
        prompt_tokens=sum(prompts) / len(prompts) if prompts else None,
    )


class TaskMeasurement:
    """The rounds of one task. An item belongs to a round before it is asked.

    sizes: those that may be asked. prefix_characters: of the messages before a question. estimate:
    of h50, from the complete rounds.
    """

    def __init__(
        self,
        task: Task,
        sizes: Sequence[int],
        items: ItemSequences,
        limits: Limits,
        prefix_characters: int = 0,
    ) -> None:
        self.task = task.name
        self.limits = limits
        self.design = AdaptiveDesign(
            sizes,
            list(map(task.chance_accuracy, sizes)),
            prompt_tokens(task, sizes, items, prefix_characters),
            answer_tokens(task, sizes),
        )
        self.rounds: list[tuple[str, ...]] = []
        self._items = items
        self._next_number: Counter[int] = Counter()
        self._outcomes: dict[str, ItemOutcome] = {}
        self._is_round_recorded = True
        self._summarize()

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the measurement is complete; None if it is not."""
        if not self._is_round_recorded:
            # Of the last round, only as much is asked as the limit allows.
            is_cut = self._allowed < len(self.rounds[-1])
            return "items" if is_cut and not self.open_items else None
        return self._reason

    @property
    def open_items(self) -> list[str]:
        """The ids of the items that are to be asked now, in order."""
        if self._is_round_recorded:
            return []
        return [id_ for id_ in self.rounds[-1][: self._allowed] if id_ not in self._outcomes]

    @property
    def answered(self) -> list[SizeOutcome]:
        """The outcomes of the answered items, in the order in which they were recorded."""
        return [each for each in self._outcomes.values() if isinstance(each, SizeOutcome)]

    def has_outcome(self, item_id: str) -> bool:
        """Return whether an item was answered or rejected."""
        return item_id in self._outcomes

    def add_round(self, item_ids: Sequence[str]) -> None:
        """Begin a round that was chosen earlier. Raises ValueError for the items of another task.

        Its outcomes may be known already; then it is complete at once.
        """
        for item_id in item_ids:
            address = parse_id(item_id)
            if address.task != self.task:
                raise ValueError(f"{item_id} is not an item of {self.task}")
            self._next_number[address.size] = max(
                self._next_number[address.size], address.number + 1
            )
        self.rounds.append(tuple(item_ids))
        self._is_round_recorded = False
        self._finish_round()

    def record(self, item_id: str, outcome: ItemOutcome) -> None:
        """Take the outcome of an item into account."""
        self._outcomes[item_id] = outcome
        self._finish_round()

    def next_round(self) -> tuple[str, ...]:
        """Return the items of the next round; none while one is open, or at the end.

        The round has not begun: see `add_round`.
        """
        if not self._is_round_recorded or self.stop_reason is not None:
            return ()
        number, ids = self._next_number.copy(), []
        for size in self.design.next_round(self._has_item):
            ids.append(ItemAddress(self.task, size, number[size]).id)
            number[size] += 1
        return tuple(ids)

    def _has_item(self, size: int, more: int = 0) -> bool:
        """Return whether there is an item of a size that is in no round, and `more` of them."""
        return self._items.item(self.task, size, self._next_number[size] + more) is not None

    @property
    def _allowed(self) -> int:
        """The number of items of the open round that the limit allows."""
        return max(0, self.limits.max_items - self.design.completed)

    def _finish_round(self) -> None:
        """Take a round into account once all of its items have outcomes, in its order."""
        ids = self.rounds[-1] if self.rounds else ()
        if self._is_round_recorded or any(item_id not in self._outcomes for item_id in ids):
            return
        self.design.begin_round()
        for item_id in ids:
            outcome, size = self._outcomes[item_id], parse_id(item_id).size
            if isinstance(outcome, Rejected):
                self.design.reject(size)
            else:
                self.design.record(size, outcome.right, outcome.tokens)
            if not self._has_item(size):
                self.design.exhaust(size)
        self._is_round_recorded = True
        self._summarize()

    def _summarize(self) -> None:
        """Keep the estimate of h50 and the reason to stop, from the complete rounds."""
        self.estimate = self.design.posterior.horizon()
        self._reason = self.design.stop_reason(self.limits)
