"""Mini-batches: which tasks, at which difficulty, how many samples of each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from bench.bittoken.data.folder import FolderSource
from bench.bittoken.data.packing import Ints, Samples, concatenated
from bench.bittoken.data.pool import Pool, Scale
from bench.bittoken.data.samples import samples_of
from bench.bittoken.data.sources import Blocks, sources
from bench.bittoken.training.balance import capped, rebalanced
from bench.bittoken.training.curriculum import Curriculum
from bench.bittoken.training.recipe import TEXT, Recipe
from bench.bittoken.vocabulary import Vocabulary
from bench.errors import BadInput

Floats = np.ndarray


class TextSource(Protocol):
    """Where text comes from: `bench.bittoken.text`."""

    def take(self, tokens: int) -> Samples: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


class Batch(NamedTuple):
    """Samples, and the task and level of each."""

    samples: Samples
    task: Ints
    level: Ints


class Wanted(NamedTuple):
    """Samples of one task: `counts[l]` of each level l; of text, about `tokens` tokens."""

    task: str
    counts: Ints
    tokens: int


class Feed:
    """The samples of every task from one split."""

    def __init__(
        self,
        recipe: Recipe,
        vocabulary: Vocabulary,
        split: str,
        process: int,
        text: TextSource | None,
        *,
        full: bool = False,
        world: int = 1,
    ) -> None:
        """The part of `split` that process `process` of `world` sees; `full`: without curricula.

        BadInput where a folder of training items holds what does not belong there.
        """
        self._recipe, self._vocabulary, self._text = recipe, vocabulary, text
        self.scales: dict[str, Scale | None] = {}
        self._pools: dict[str, Pool] = {}
        # NumPy and Arrow let other threads run while they work.
        self._threads = ThreadPoolExecutor(len(recipe.data.tasks))
        for task in recipe.data.tasks:
            if task == TEXT:
                continue
            easy = task in recipe.data.curriculum and not full
            found = sources(
                task,
                split=split,
                seed=recipe.training.seed,
                process=process,
                max_digits=recipe.data.digits,
                easy=easy,
                base=recipe.base,
            )
            # All feeds count difficulty alike: the training split is the measure.
            alike = [source._replace(split="train", process=0) for source in found]
            self.scales[task] = Scale(alike, recipe.base) if easy else None
            stored: list[Blocks] = []
            if recipe.data.folder is not None and split == "train":
                stored = [FolderSource(Path(recipe.data.folder), task, index=process, world=world)]
            self._pools[task] = Pool(stored or found, self.scales[task])

    @property
    def pooled(self) -> tuple[str, ...]:
        """The tasks of which it keeps a stock."""
        return tuple(self._pools)

    def take(self, wanted: Sequence[Wanted]) -> list[tuple[Samples, Ints]]:
        """The samples of different tasks and the level of each, every task in a thread."""
        return list(self._threads.map(self._samples, wanted))

    def _samples(self, wanted: Wanted) -> tuple[Samples, Ints]:
        if wanted.task == TEXT:
            assert self._text is not None
            samples = self._text.take(max(wanted.tokens, self._recipe.model.context))
            return samples, np.zeros(len(samples.lengths), np.int64)
        items, level = self._pools[wanted.task].take(wanted.counts)
        return samples_of(wanted.task, items, self._vocabulary), level

    def state(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """What `restore` needs: plain values, and the stock of each task."""
        plain: dict[str, Any] = {}
        stocks = {}
        for task, pool in self._pools.items():
            plain[task], stocks[task] = pool.state()
        if self._text is not None:
            plain[TEXT] = self._text.state()
        return plain, stocks

    def restore(self, plain: dict[str, Any], stocks: dict[str, pa.Table]) -> None:
        """Go on where a feed of the same recipe stood."""
        for task, pool in self._pools.items():
            pool.restore(plain[task], stocks[task])
        if self._text is not None:
            self._text.restore(plain[TEXT])


class Mixture:
    """The state of the task balance and of every task's curriculum."""

    def __init__(self, recipe: Recipe, scales: dict[str, Scale | None]) -> None:
        self.tasks = recipe.data.tasks
        self._recipe = recipe
        self.ratios = np.full(len(self.tasks), 1 / len(self.tasks))
        self.performance = np.zeros(len(self.tasks))
        self.curricula: dict[str, Curriculum] = {
            task: Curriculum.start(scale.levels) for task, scale in scales.items() if scale
        }
        # No sample is shorter: the first batches find too many rather than too few.
        self._length = np.full(len(self.tasks), 7.0)
        self._batches = 0

    def batch(
        self, feed: Feed, tokens: int, ratios: Floats | None = None, *, leveled: bool = True
    ) -> Batch:
        """At most `tokens` tokens, divided among the tasks by their ratios (or by `ratios`).

        leveled: the curricula say how many samples of each level; otherwise `feed` has no levels.
        BadInput where not even one sample fits.
        """
        budgets = [int(share) for share in tokens * (self.ratios if ratios is None else ratios)]
        asked = {
            number: Wanted(self.tasks[number], self._wanted(number, budget, leveled), budget)
            for number, budget in enumerate(budgets)
            if budget
        }
        parts, tasks, levels = [], [], []
        for number, (samples, level) in zip(asked, feed.take(list(asked.values())), strict=True):
            self._length[number] += 0.1 * (samples.lengths.mean() - self._length[number])
            order = self._order(len(samples.lengths))
            # A window of text may be longer than a small share.
            least = self._recipe.model.context if self.tasks[number] == TEXT else 0
            room = max(budgets[number], least)
            fitting = order[np.cumsum(samples.lengths[order]) <= room]
            parts.append(samples.take(fitting))
            tasks.append(np.full(len(fitting), number))
            levels.append(level[fitting])
        if not sum(map(len, tasks)):
            raise BadInput(
                f"no sample fits into a batch of {tokens} tokens: give more training.batch_tokens "
                "and training.validation_tokens"
            )
        return Batch(concatenated(parts), np.concatenate(tasks), np.concatenate(levels))

    def measured(self, task: Ints, score: Floats) -> None:
        """Take in scores in [0, 1] on the full distribution of the tasks, and rebalance them."""
        for number in np.unique(task):
            self.performance[number] = float(score[task == number].mean())
        new = rebalanced(self.ratios, self.performance, self._recipe.data.balance)
        self.ratios = capped(new, self._recipe.data.most_share)

    def measured_levels(self, task: Ints, level: Ints, score: Floats) -> None:
        """Take in scores on the levels that the curricula draw from."""
        for name, curriculum in self.curricula.items():
            mine = task == self.tasks.index(name)
            curriculum.measured(level[mine], score[mine])

    def state(self) -> dict[str, Any]:
        """All that `restore` needs, as plain values."""
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
        """Go on where a mixture of the same recipe stood."""
        self.ratios, self.performance, self._length = (
            np.array(state[name]) for name in ("ratios", "performance", "length")
        )
        self._batches = state["batches"]
        for name, saved in state["curricula"].items():
            curriculum = self.curricula[name]
            curriculum.frontier, curriculum.seen = saved["frontier"], saved["seen"]
            curriculum.performance = np.array(saved["performance"])
            curriculum.ratios = np.array(saved["ratios"])

    def _order(self, count: int) -> Ints:
        """A random order, so that what does not fit is not always the hardest."""
        self._batches += 1
        words = np.random.Philox(key=self._batches).random_raw(count)
        return np.argsort(words)

    def _wanted(self, number: int, budget: int, leveled: bool) -> Ints:
        curriculum = self.curricula.get(self.tasks[number]) if leveled else None
        shares = curriculum.shares() if curriculum else np.ones(1)
        # More than fit on average: what does not fit is dropped, and no budget is left unused.
        count = int(1.25 * budget / self._length[number]) + 4
        # Rounded so that they add up.
        upto = np.floor(np.cumsum(shares) * count + 0.5).astype(np.int64)
        wanted: Ints = np.diff(upto, prepend=0)
        return wanted
