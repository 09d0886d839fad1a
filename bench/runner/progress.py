"""Where a long run stands, as a value: what whoever shows it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class TaskProgress(NamedTuple):
    """Where one task stands, what earlier calls of the same run brought included.

    answered, errors: items that need no more asking. judged, right: answers that could be judged,
    and those that match. generated (tokens) is a sum over `counted` answers, cost (US dollars)
    over what was billed; both None where nothing was reported. unpriced: answers of unknown cost.
    """

    task: str
    total: int
    answered: int = 0
    errors: int = 0
    judged: int = 0
    right: int = 0
    counted: int = 0
    generated: int | None = None
    cost: float | None = None
    unpriced: int = 0

    @property
    def done(self) -> int:
        """Items that need no more asking."""
        return self.answered + self.errors

    @property
    def accuracy(self) -> float | None:
        """Share of the judged answers that are right, None while there is none."""
        return self.right / self.judged if self.judged else None

    @property
    def tokens_per_answer(self) -> float | None:
        """Mean of the generated tokens over the answers that report them."""
        return None if self.generated is None else self.generated / self.counted


class Progress(NamedTuple):
    """Where a run stands. `tasks` and `before` speak of the whole run, the rest of this call.

    before: items that were settled before this call. rate: items per second of late. seconds:
    since the start. held: seconds for which the provider still wants no requests. in_flight,
    allowed, asked_for: requests under way, at most now, and at most as asked for (0 where
    requests are not ours to pace). judging: whether answers are judged at all. note: a state in
    words.
    """

    tasks: tuple[TaskProgress, ...]
    before: int = 0
    retries: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    in_flight: int = 0
    allowed: int = 0
    asked_for: int = 0
    held: float = 0.0
    judging: bool = False
    note: str = ""

    @property
    def whole(self) -> TaskProgress:
        """All tasks as one; the accuracy is that of all judged answers together."""
        generated = [task.generated for task in self.tasks if task.generated is not None]
        costs = [task.cost for task in self.tasks if task.cost is not None]
        return TaskProgress(
            task="all",
            total=self.total,
            answered=sum(task.answered for task in self.tasks),
            errors=sum(task.errors for task in self.tasks),
            judged=sum(task.judged for task in self.tasks),
            right=sum(task.right for task in self.tasks),
            counted=sum(task.counted for task in self.tasks),
            generated=sum(generated) if generated else None,
            cost=sum(costs) if costs else None,
            unpriced=sum(task.unpriced for task in self.tasks),
        )

    @property
    def total(self) -> int:
        """Items of the whole run."""
        return sum(task.total for task in self.tasks)

    @property
    def done(self) -> int:
        """Items of the whole run that need no more asking."""
        return sum(task.done for task in self.tasks)

    @property
    def left(self) -> float | None:
        """Seconds to the end at the present rate, None where there is no rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None

    @property
    def mean_rate(self) -> float:
        """Items per second over all of this call."""
        return (self.done - self.before) / self.seconds if self.seconds > 0 else 0.0


Watch = Callable[[Progress], None]
