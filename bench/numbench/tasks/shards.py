"""Shards: endless, reproducible streams of distinct items that make up a split.

The samplers of `numbench.tasks` are the definition of the items; they make one at a time.
Few-shot examples, plugin tasks and the study profile use them directly. `numbench.vectorized` makes
equal items of the nine paper tasks in arrays, faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from numbench.errors import BadInput
from numbench.records import Item
from numbench.tasks import TASKS, short_integers, study_profile
from numbench.tasks.base import SampledQuestion, SamplingSettings
from numbench.tasks.exact_arithmetic import in_range
from numbench.tasks.items import make_item, shard_of, split_of
from numbench.tasks.random_words import RandomStream, RandomWords, attempts


@dataclass(frozen=True)
class Shard:
    """A part of the items of one task and split.

    A shard has its own random stream. It keeps the items of its split whose content hash assigns
    them to it among `count` shards, so that shards share no item. profile: `study` for items
    distributed as the published ones (`numbench.tasks.study_profile`); it ignores the settings.
    """

    task: str
    seed: int = 1
    split: str = "test"
    index: int = 0
    count: int = 1
    max_digits: int = 15
    max_bits: int | None = None
    max_shift: int = 0
    question_size: int | None = None
    profile: str | None = None

    @property
    def settings(self) -> SamplingSettings:
        """The settings of the task's sampler."""
        return SamplingSettings(self.max_digits, self.max_bits, self.max_shift, self.question_size)

    @property
    def stream(self) -> RandomStream:
        """The random stream of this shard."""
        name = TASKS[self.task].stream_name or self.task
        if self.max_bits is not None:
            name += f" of integers, {self.max_bits} bits, shift {self.max_shift}"
        if self.question_size is not None:
            name += f" of size {self.question_size}"
        if self.profile is not None:
            name += f" of the {self.profile} profile"
        return RandomStream(self.seed, name, self.split, self.index)

    @property
    def sample(self) -> Callable[[RandomWords, SamplingSettings], SampledQuestion | None]:
        """The sampler of one attempt."""
        if self.profile is not None:
            return study_profile.SAMPLERS[self.task]
        if self.max_bits is not None:
            return short_integers.SAMPLERS[self.task]
        return TASKS[self.task].sample

    @property
    def words_per_attempt(self) -> int:
        """The number of random words of an attempt."""
        if self.profile is not None:
            return study_profile.WORDS_PER_ATTEMPT
        if self.max_bits is not None:
            return short_integers.WORDS_PER_ATTEMPT
        task = TASKS[self.task]
        if task.sizes is not None:
            assert self.question_size is not None
            return task.sizes.words(self.question_size)
        return task.words_per_attempt


class ItemsExhausted(Exception):
    """A shard has hardly any further distinct items; it had `item_count`."""

    def __init__(self, item_count: int) -> None:
        super().__init__(f"only {item_count} different items")
        self.item_count = item_count


MAX_ATTEMPTS_WITHOUT_ITEM = 1 << 18
"""A dataset of one shard is exhausted after so many attempts in a row without an item, one of n
shards after n times as many: the sampler discards every attempt, or the split has no question."""

EXHAUSTION_WINDOW = 1 << 18
MIN_NEW_FRACTION = 1 / 1000
"""A shard is exhausted if a smaller share of EXHAUSTION_WINDOW consecutive items is new."""

MAX_ATTEMPTS_WITHOUT_NEW = 1 << 13
"""A shard of a scaled task is exhausted after so many attempts without a new item: there are few
questions of one digit, and perhaps none in a split."""


def generate_items(shard: Shard) -> Iterator[Item]:
    """Yield the distinct items of a shard in order. Raises ItemsExhausted at their end.

    Raises BadInput if the task samples a question that has no exact answer.
    """
    seen: set[str] = set()
    candidates = new = since_new = since_item = 0
    for words in attempts(shard.stream, shard.words_per_attempt):
        item = _make_attempt(shard, words)
        since_new += 1
        if shard.question_size is not None and since_new > MAX_ATTEMPTS_WITHOUT_NEW:
            raise ItemsExhausted(len(seen))
        if item is None:
            since_item += 1
            if since_item >= MAX_ATTEMPTS_WITHOUT_ITEM * shard.count:
                raise ItemsExhausted(len(seen))
            continue
        since_item = 0
        candidates += 1
        if item.id not in seen:
            seen.add(item.id)
            new += 1
            since_new = 0
            yield item
        if candidates == EXHAUSTION_WINDOW:
            if new < candidates * MIN_NEW_FRACTION:
                raise ItemsExhausted(len(seen))
            candidates = new = 0


def _make_attempt(shard: Shard, words: RandomWords) -> Item | None:
    """Return the item of one attempt; None if it breaks a rule or is not part of the shard."""
    task = TASKS[shard.task]
    question = shard.sample(words, shard.settings)
    if question is None:
        return None
    operator, operands, params = question
    try:
        if split_of(operands) != shard.split:
            return None
        if shard.count > 1 and shard_of(operands, shard.count) != shard.index:
            return None
        answer = task.exact_answer(operator, operands)
        if task.metric == "log_smape" and not in_range(str(answer)):
            return None
        return make_item(task.name, operator, operands, params, answer=answer)
    except (ArithmeticError, ValueError) as error:
        raise BadInput(
            f"task {task.name!r} sampled the operands {', '.join(operands)}: {error}; "
            "correct Task.sample or Task.exact_answer"
        ) from error
