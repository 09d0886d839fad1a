"""Shards: the endless, repeatable streams of distinct items that make up a split.

This is the plain definition, one item at a time; `bench.batch` gives the same items faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.records import Item
from bench.tasks import TASKS
from bench.tasks.base import Sampling
from bench.tasks.draws import Draws, Stream, attempts
from bench.tasks.items import home_of, make_item, split_of
from bench.tasks.truth import in_range


@dataclass(frozen=True)
class Shard:
    """A share of the items of one task and split.

    It draws from a random stream of its own and keeps what belongs to its split and, of that,
    the items whose content sends them to it among `count` shards. So shards share no item.
    """

    task: str
    seed: int = 1
    split: str = "test"
    index: int = 0
    count: int = 1
    max_digits: int = 15

    @property
    def stream(self) -> Stream:
        """The random stream of this shard."""
        return Stream(self.seed, TASKS[self.task].stream or self.task, self.split, self.index)


class Exhausted(Exception):
    """There are no more different items; `found` is how many there were."""

    def __init__(self, found: int) -> None:
        super().__init__(f"only {found} different items")
        self.found = found


PATIENCE = 1 << 18
LEAST_NEW = 1 / 1000
"""A shard is exhausted where of PATIENCE items in a row a smaller share than LEAST_NEW is new."""


def items(shard: Shard) -> Iterator[Item]:
    """The distinct items of a shard, in order. Exhausted where hardly any new ones come."""
    seen: set[str] = set()
    candidates = new = 0
    for draws in attempts(shard.stream, TASKS[shard.task].words):
        item = _attempt(shard, draws)
        if item is None:
            continue
        candidates += 1
        if item.id not in seen:
            seen.add(item.id)
            new += 1
            yield item
        if candidates == PATIENCE:
            if new < candidates * LEAST_NEW:
                raise Exhausted(len(seen))
            candidates = new = 0


def _attempt(shard: Shard, draws: Draws) -> Item | None:
    """The item of one attempt; None where it breaks a rule, leaves the range, split or shard."""
    task = TASKS[shard.task]
    problem = task.sample(draws, Sampling(shard.max_digits))
    if problem is None or split_of(problem.operands) != shard.split:
        return None
    if shard.count > 1 and home_of(problem.operands, shard.count) != shard.index:
        return None
    answer = task.truth(problem.operator, problem.operands)
    if task.metric == "log_smape" and not in_range(str(answer)):
        return None
    return make_item(task.name, *problem, answer=answer)
