"""Buffered questions of one task, grouped by level of difficulty; each is returned once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bittoken.data.packing import RaggedArray
from bittoken.data.question_sources import QuestionSource, difficulties
from bittoken.encodings.base import IntArray

MAX_LEVELS = 64
"""Maximum number of difficulty levels of a task."""

_MAX_BUFFERED_PER_LEVEL = 1024
_MIN_READS = 12
_MIN_GAIN = 0.01
_MIN_ITEMS_PER_LEVEL = 32
_COLUMNS = ("operands", "operator", "answer")


class DifficultyLevels:
    """A mapping of δ to at most MAX_LEVELS nonempty levels (paper, "Problem difficulty").

    In the paper, every δ is a level. But products of digit counts reach thousands, and a curriculum
    would never advance beyond a δ that almost no question has.
    """

    def __init__(self, sources: Sequence[QuestionSource], base: int) -> None:
        """Derive the levels from all sources of a task; the first one determines the largest δ."""
        self.base = base
        samples = [difficulties(source.block(0), base) for source in sources]
        self.max_difficulty = int(samples[0].max())
        self.step = -(-(self.max_difficulty + 1) // MAX_LEVELS)
        counts = np.bincount(self._steps(np.concatenate(samples)))
        self._level = _merge_sparse_levels(counts, _MIN_ITEMS_PER_LEVEL)
        self.levels = int(self._level[-1]) + 1

    def level(self, items: pa.Table) -> IntArray:
        """Return the level of each item; items above the largest δ have the highest level."""
        level: IntArray = self._level[self._steps(difficulties(items, self.base))]
        return level

    def _steps(self, delta: IntArray) -> IntArray:
        steps: IntArray = np.minimum(delta, self.max_difficulty) // self.step
        return steps


def _merge_sparse_levels(counts: IntArray, min_items: int) -> IntArray:
    """Return the level of each step of δ.

    Consecutive steps are merged, from the lowest, until a level has `min_items` items. If too few
    items remain for another level, they belong to the last one.
    """
    level, items_in_level = np.zeros(len(counts), np.int64), 0
    for step in range(1, len(counts)):
        items_in_level += int(counts[step - 1])
        is_complete = items_in_level >= min_items and int(counts[step:].sum()) >= min_items
        level[step] = level[step - 1] + is_complete
        items_in_level = 0 if is_complete else items_in_level
    return level


@dataclass
class _SourceStats:
    """The number of blocks read from a source, and the number of items per level in them."""

    blocks: int
    levels: IntArray


class SampleBuffer:
    """A buffer of items per level, filled from the sources that provide the needed levels.

    It contains items; `tokenize_items` converts them to samples.
    """

    def __init__(self, sources: Sequence[QuestionSource], scale: DifficultyLevels | None) -> None:
        """Create an empty buffer; without a scale, all items have the same level."""
        self._sources = sources
        self._scale = scale
        self.levels = scale.levels if scale else 1
        self._source_stats = [_SourceStats(0, np.zeros(self.levels, np.int64)) for _ in sources]
        self._items: pa.Table | None = None
        self._queues = _LevelQueues(np.empty(0, np.int64), self.levels)

    def take(self, requested: IntArray) -> tuple[pa.Table, IntArray]:
        """Return `requested[l]` items of each level l, and their levels. No item is repeated.

        If a level has too few items, the other requested levels provide more instead; if those are
        empty too, any level does.
        """
        self._fill(requested)
        counts = _allocate(requested, self._queues.counts)
        assert self._items is not None
        items = self._items.take(pa.array(self._queues.take(counts)))
        return items, np.repeat(np.arange(self.levels), counts)

    def state(self) -> tuple[dict[str, list[object]], pa.Table]:
        """Return the state that `restore` needs: statistics of the sources and buffered items."""
        stats = [{"blocks": s.blocks, "levels": s.levels.tolist()} for s in self._source_stats]
        rows = self._queues.rows()
        items = pa.table({}) if self._items is None else self._items.take(pa.array(rows))
        level = pa.array(self._queues.level[rows])
        return {"given": list(stats)}, items.append_column("level", level)

    def restore(self, state: dict[str, list[dict[str, object]]], items: pa.Table) -> None:
        """Continue from the state of a buffer with the same sources."""
        self._source_stats = [
            _SourceStats(int(str(stats["blocks"])), np.array(stats["levels"], np.int64))
            for stats in state["given"]
        ]
        level = np.asarray(items["level"].combine_chunks())
        buffered = items.drop_columns(["level"])
        self._items = buffered if buffered.num_columns else None
        self._queues = _LevelQueues(level, self.levels)

    def _fill(self, requested: IntArray) -> None:
        """Read blocks until all requested items are buffered, or no source is likely to help.

        Each step reads the source with the largest expected number of missing items per block,
        estimated from its blocks so far.
        """
        for source in range(len(self._sources)):
            if not self._source_stats[source].blocks:
                self._read(source, requested)
        block_sizes = [stats.levels.sum() / stats.blocks for stats in self._source_stats]
        for _ in range(_MIN_READS + int(2 * requested.sum() / max(*block_sizes, 1))):
            missing = np.maximum(requested - self._queues.counts, 0)
            gains = [
                np.minimum(missing, stats.levels / stats.blocks).sum()
                for stats in self._source_stats
            ]
            best = int(np.argmax(gains))
            if gains[best] <= _MIN_GAIN * min(requested.sum(), block_sizes[best]):
                return
            self._read(best, requested)

    def _read(self, source: int, requested: IntArray) -> None:
        """Add the next block of a source to the buffer."""
        stats = self._source_stats[source]
        items = self._sources[source].block(stats.blocks)
        level = self._scale.level(items) if self._scale else np.zeros(len(items), np.int64)
        stats.blocks += 1
        stats.levels += np.bincount(level, minlength=self.levels)
        items = items.select(list(_COLUMNS))
        # Drop the items already returned, and the newest of a level with more than its limit.
        old_rows, old_count = self._queues.rows(), len(self._queues.level)
        rows = np.concatenate([old_rows, old_count + np.arange(len(items))])
        level = np.concatenate([self._queues.level, level])[rows]
        limit = np.maximum(requested, _MAX_BUFFERED_PER_LEVEL)
        kept = _LevelQueues(level, self.levels).rows(limit)
        buffered = pa.concat_tables([self._items, items]) if self._items is not None else items
        self._items = buffered.take(pa.array(rows[kept])).combine_chunks()
        self._queues = _LevelQueues(level[kept], self.levels)


class _LevelQueues:
    """A first-in, first-out queue of buffered rows for each level.

    level: the level of every row, (rows,). counts: the length of each queue, (levels,).
    """

    def __init__(self, level: IntArray, levels: int) -> None:
        self.level = level
        self.counts = np.bincount(level, minlength=levels)
        self._order = np.argsort(level, kind="stable")
        self._first = np.cumsum(self.counts) - self.counts

    def take(self, counts: IntArray) -> IntArray:
        """Remove and return the first `counts[l]` rows of each level l."""
        taken = self._heads(counts)
        self._first, self.counts = self._first + counts, self.counts - counts
        return taken

    def rows(self, limit: IntArray | None = None) -> IntArray:
        """Return the queued rows in buffer order, at most `limit[l]` of each level l."""
        heads = self._heads(self.counts if limit is None else np.minimum(self.counts, limit))
        return np.sort(heads)

    def _heads(self, counts: IntArray) -> IntArray:
        queues = RaggedArray(self._order, self._first, counts)
        return queues.values[queues.flat_indices(np.arange(len(counts)))]


def _allocate(requested: IntArray, available: IntArray) -> IntArray:
    """Return the number of items to take from each level.

    The shortfall of levels with too few items is distributed over the other requested levels, in
    proportion to their spare items, or over all levels if no requested level has any items.
    """
    counts = np.minimum(requested, available)
    spare = np.where(requested > 0, available - counts, 0)
    if not counts.any() and not spare.any():
        spare = available
    shortfall = min(int((requested - counts).sum()), int(spare.sum()))
    if shortfall > 0:
        # Round cumulative shares, so that the parts add up to the shortfall.
        cumulative = np.cumsum(spare) * shortfall // spare.sum()
        counts += np.diff(cumulative, prepend=0)
    return counts
