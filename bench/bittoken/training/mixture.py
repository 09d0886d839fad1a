"""Mini-batches: the samples of every task, their difficulty and their number."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from bittoken.data.packing import Samples, concatenate_samples
from bittoken.data.question_sources import (
    DatasetSource,
    GeneratedSource,
    QuestionSource,
    ShortIntegerSource,
    generated_sources,
    short_integer_sources,
)
from bittoken.data.sample_buffer import DifficultyLevels, SampleBuffer
from bittoken.data.tokenization import tokenize_items
from bittoken.encodings.base import FloatArray, IntArray
from bittoken.training.curriculum import Curriculum, capped, rebalanced
from bittoken.training.recipe import TEXT, Recipe
from bittoken.vocabulary import Vocabulary
from numbench.errors import BadInput


class TextSource(Protocol):
    """A resumable source of text samples, implemented by `bittoken.text`."""

    def take(self, tokens: int) -> Samples: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


class Batch(NamedTuple):
    """Samples with the task index and difficulty level of each."""

    samples: Samples
    task: IntArray
    level: IntArray


class SampleRequest(NamedTuple):
    """A request for samples of one task: `counts[l]` of each level l, or about `tokens` of text.

    tokens: the tokens that the samples may have; None: no limit.
    """

    task: str
    counts: IntArray
    tokens: int | None


class BatchSize(NamedTuple):
    """The size of a batch: a number of tokens or, if set, of questions."""

    tokens: int = 0
    questions: int = 0


TEXT_TOKENS_PER_QUESTION = 64
"""The tokens of text that stand for a question where a batch is sized in questions."""


class DataLoader:
    """Loads the samples of every task from one split."""

    def __init__(
        self,
        recipe: Recipe,
        vocabulary: Vocabulary,
        split: str,
        rank: int,
        text: TextSource | None,
        *,
        use_full_range: bool = False,
        world_size: int = 1,
    ) -> None:
        """Load the part of `split` for process `rank` of `world_size`.

        use_full_range: draw from the full distribution of every task, without difficulty levels.
        Raises BadInput if a folder of training items is not a dataset for them.
        """
        self._recipe, self._vocabulary, self._text = recipe, vocabulary, text
        self.scales: dict[str, DifficultyLevels | None] = {}
        self._buffers: dict[str, SampleBuffer] = {}
        # NumPy and Arrow release the GIL while they work.
        self._threads = ThreadPoolExecutor(len(recipe.data.tasks))
        for task in recipe.data.tasks:
            if task == TEXT:
                continue
            has_levels = task in recipe.data.curriculum and not use_full_range
            generated = _generated_sources(recipe, task, split, rank, easy=has_levels)
            # All loaders define the levels by the training split, so that levels are comparable.
            reference = [source._replace(split="train", rank=0) for source in generated]
            self.scales[task] = DifficultyLevels(reference, recipe.base) if has_levels else None
            stored: list[QuestionSource] = []
            if recipe.data.folder is not None and split == "train":
                stored = [
                    DatasetSource(Path(recipe.data.folder), task, rank=rank, world_size=world_size)
                ]
            self._buffers[task] = SampleBuffer(stored or generated, self.scales[task])

    @property
    def buffered_tasks(self) -> tuple[str, ...]:
        """The tasks that have a sample buffer: all but text."""
        return tuple(self._buffers)

    def take(self, requests: Sequence[SampleRequest]) -> list[tuple[Samples, IntArray]]:
        """Return samples and the level of each for every request, one thread per request."""
        return list(self._threads.map(self._samples, requests))

    def _samples(self, request: SampleRequest) -> tuple[Samples, IntArray]:
        if request.task == TEXT:
            assert self._text is not None
            assert request.tokens is not None
            samples = self._text.take(request.tokens)
            return samples, np.zeros(len(samples.lengths), np.int64)
        items, level = self._buffers[request.task].take(request.counts)
        return tokenize_items(request.task, items, self._vocabulary), level

    def state(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """Return the state for `restore`: plain values, and the buffered samples by task."""
        metadata: dict[str, Any] = {}
        samples = {}
        for task, buffer in self._buffers.items():
            metadata[task], samples[task] = buffer.state()
        if self._text is not None:
            metadata[TEXT] = self._text.state()
        return metadata, samples

    def restore(self, metadata: dict[str, Any], samples: dict[str, pa.Table]) -> None:
        """Continue from the state of a loader with the same recipe."""
        for task, buffer in self._buffers.items():
            buffer.restore(metadata[task], samples[task])
        if self._text is not None:
            self._text.restore(metadata[TEXT])


def _generated_sources(
    recipe: Recipe, task: str, split: str, rank: int, *, easy: bool
) -> list[GeneratedSource] | list[ShortIntegerSource]:
    seed, data = recipe.training.seed, recipe.data
    if data.bits is not None:
        return short_integer_sources(
            task, split=split, seed=seed, rank=rank, bits=data.bits, shift=data.shift, easy=easy
        )
    return generated_sources(
        task,
        split=split,
        seed=seed,
        rank=rank,
        max_digits=data.digits,
        easy=easy,
        base=recipe.base,
    )


class Mixture:
    """Divides batches among tasks and levels: task ratios and the curriculum of every task."""

    def __init__(self, recipe: Recipe, scales: dict[str, DifficultyLevels | None]) -> None:
        self.tasks = recipe.data.tasks
        self._recipe = recipe
        self.ratios = np.full(len(self.tasks), 1 / len(self.tasks))
        self.performance = np.zeros(len(self.tasks))
        self.curricula: dict[str, Curriculum] = {
            task: Curriculum.start(scale.levels) for task, scale in scales.items() if scale
        }
        # Running mean of sample lengths; starts at the minimum, so that the first batches request
        # too many samples rather than too few.
        self._length = np.full(len(self.tasks), 7.0)
        self._batches = 0

    def batch(
        self,
        loader: DataLoader,
        size: BatchSize,
        ratios: FloatArray | None = None,
        *,
        use_curriculum: bool = True,
    ) -> Batch:
        """Return a batch of at most `size`, divided by the task ratios (or by `ratios`).

        use_curriculum: the curricula determine the number of samples per level; if False, `loader`
        must have no levels. Raises BadInput if not even one sample fits.
        """
        requests = self._requests(
            size, self.ratios if ratios is None else ratios, use_curriculum=use_curriculum
        )
        taken = loader.take(list(requests.values()))
        parts, tasks, levels = [], [], []
        for number, (samples, level) in zip(requests, taken, strict=True):
            self._length[number] += 0.1 * (samples.lengths.mean() - self._length[number])
            rows = self._order(len(samples.lengths))
            limit = requests[number].tokens
            if limit is not None:
                rows = rows[np.cumsum(samples.lengths[rows]) <= limit]
            parts.append(samples.take(rows))
            tasks.append(np.full(len(rows), number))
            levels.append(level[rows])
        if not sum(map(len, tasks)):
            raise BadInput(
                f"no sample fits into a batch of {size.tokens} tokens: increase "
                "training.batch_tokens and training.validation_tokens"
            )
        return Batch(concatenate_samples(parts), np.concatenate(tasks), np.concatenate(levels))

    def _requests(
        self, size: BatchSize, ratios: FloatArray, *, use_curriculum: bool
    ) -> dict[int, SampleRequest]:
        """Return the request for each task that has a share of the batch, by task index."""
        requests = {}
        for number, task in enumerate(self.tasks):
            tokens = int(size.tokens * ratios[number])
            questions = 0
            if size.questions:
                # Cumulative rounding, so that the questions of all tasks add up to the size.
                questions = _round_half_up(size.questions * ratios[: number + 1].sum())
                questions -= _round_half_up(size.questions * ratios[:number].sum())
                tokens = TEXT_TOKENS_PER_QUESTION * questions
            if task == TEXT and tokens:
                # A window of text may be longer than a small share of the batch.
                tokens = max(tokens, self._recipe.model.context)
                requests[number] = SampleRequest(task, np.zeros(1, np.int64), tokens)
            elif questions:
                counts = self._divide(number, questions, use_curriculum)
                requests[number] = SampleRequest(task, counts, None)
            elif tokens:
                # More than fit on average, so that the budget is used up; the excess is dropped.
                count = int(1.25 * tokens / self._length[number]) + 4
                counts = self._divide(number, count, use_curriculum)
                requests[number] = SampleRequest(task, counts, tokens)
        return requests

    def update_task_ratios(self, task: IntArray, score: FloatArray) -> None:
        """Rebalance the tasks by their scores, in [0, 1], on the full distribution."""
        for number in np.unique(task):
            self.performance[number] = float(score[task == number].mean())
        new = rebalanced(self.ratios, self.performance, self._recipe.data.balance)
        self.ratios = capped(new, self._recipe.data.most_share)

    def update_curricula(self, task: IntArray, level: IntArray, score: FloatArray) -> None:
        """Update the curricula with the scores of samples that were drawn by level."""
        for name, curriculum in self.curricula.items():
            is_task = task == self.tasks.index(name)
            curriculum.update(level[is_task], score[is_task])

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, as plain values."""
        curricula = {
            name: {
                "frontier": c.frontier,
                "performance": c.performance.tolist(),
                "ratios": c.ratios.tolist(),
                "seen": c.seen,
            }
            for name, c in self.curricula.items()
        }
        return {
            "ratios": self.ratios.tolist(),
            "performance": self.performance.tolist(),
            "length": self._length.tolist(),
            "batches": self._batches,
            "curricula": curricula,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a mixture with the same recipe."""
        self._length = np.array(state["length"])
        self._batches = state["batches"]
        self.restore_shares(state)

    def restore_shares(self, state: dict[str, Any]) -> None:
        """Take the task ratios and curricula from the state of another mixture."""
        self.ratios, self.performance = (
            np.array(state[name]) for name in ("ratios", "performance")
        )
        for name, saved in state["curricula"].items():
            curriculum = self.curricula[name]
            curriculum.frontier, curriculum.seen = saved["frontier"], saved["seen"]
            curriculum.performance = np.array(saved["performance"])
            curriculum.ratios = np.array(saved["ratios"])

    def _order(self, count: int) -> IntArray:
        """Return a random order, so that the samples that do not fit are not always the hardest."""
        self._batches += 1
        words = np.random.Philox(key=self._batches).random_raw(count)
        return np.argsort(words)

    def _divide(self, number: int, count: int, use_curriculum: bool) -> IntArray:
        """Return how many of `count` samples of a task to take from each level."""
        curriculum = self.curricula.get(self.tasks[number]) if use_curriculum else None
        shares = curriculum.shares() if curriculum else np.ones(1)
        # Cumulative rounding, so that the counts add up to `count`.
        cumulative = np.floor(np.cumsum(shares) * count + 0.5).astype(np.int64)
        counts: IntArray = np.diff(cumulative, prepend=0)
        return counts


def _round_half_up(value: float) -> int:
    return int(np.floor(value + 0.5))
