"""Questions of one task, sorted by level of difficulty and waiting to be taken, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.bittoken.data.packing import Ints
from bench.bittoken.data.ragged import Ragged
from bench.bittoken.data.sources import Blocks, difficulties

LEVELS = 64
"""Most levels of a task."""

_MOST_WAITING = 1024
_TRIES, _LEAST_GAIN = 12, 0.01
_LEAST_OF_LEVEL = 32
_KEPT = ("operands", "operator", "answer")


class Scale:
    """δ in at most LEVELS levels, none of them empty (paper, "Problem difficulty").

    The paper counts every δ as a level of its own; but products of digit counts reach thousands,
    and no curriculum would ever get past a δ that hardly any question has.
    """

    def __init__(self, sources: Sequence[Blocks], base: int) -> None:
        """`sources`: all there are of the task, the first of which shows its largest δ."""
        self.base = base
        found = [difficulties(source.block(0), base) for source in sources]
        self.largest = int(found[0].max())
        self.step = -(-(self.largest + 1) // LEVELS)
        counts = np.bincount(self._steps(np.concatenate(found)))
        self._level = _filled(counts, _LEAST_OF_LEVEL)
        self.levels = int(self._level[-1]) + 1

    def level(self, items: pa.Table) -> Ints:
        """The level of each item; what is harder than the largest δ belongs to the hardest."""
        level: Ints = self._level[self._steps(difficulties(items, self.base))]
        return level

    def _steps(self, delta: np.ndarray) -> Ints:
        steps: Ints = np.minimum(delta, self.largest) // self.step
        return steps


def _filled(counts: Ints, least: int) -> Ints:
    """The level of each step of δ: steps joined from below until a level has `least` items.

    Too few for a last level of their own join the one before.
    """
    level, held = np.zeros(len(counts), np.int64), 0
    for step in range(1, len(counts)):
        held += int(counts[step - 1])
        full = held >= least and int(counts[step:].sum()) >= least
        level[step] = level[step - 1] + full
        held = 0 if full else held
    return level


@dataclass
class _Yield:
    """What a source has given so far: blocks read, and items per level."""

    blocks: int
    levels: Ints


class Pool:
    """A stock of items per level, filled from whichever source gives most of what is wanted."""

    def __init__(self, sources: Sequence[Blocks], scale: Scale | None) -> None:
        """Without a scale all items are of one level."""
        self._sources = sources
        self._scale = scale
        self.levels = scale.levels if scale else 1
        self._given = [_Yield(0, np.zeros(self.levels, np.int64)) for _ in sources]
        self._stock: pa.Table | None = None
        self._waiting = _Queues(np.empty(0, np.int64), self.levels)

    def take(self, wanted: Ints) -> tuple[pa.Table, Ints]:
        """`wanted[l]` items of each level l and their levels; no item is given twice.

        Where a level has too few, the other wanted levels give more in its place; where none of
        these has any, whatever level has.
        """
        self._fill(wanted)
        counts = _made_up(wanted, self._waiting.counts)
        assert self._stock is not None
        items = self._stock.take(pa.array(self._waiting.take(counts)))
        return items, np.repeat(np.arange(self.levels), counts)

    def state(self) -> tuple[dict[str, list[object]], pa.Table]:
        """All that `restore` needs: what the sources gave, and the stock."""
        given = [{"blocks": g.blocks, "levels": g.levels.tolist()} for g in self._given]
        rows = self._waiting.rows()
        stock = pa.table({}) if self._stock is None else self._stock.take(pa.array(rows))
        level = pa.array(self._waiting.level[rows])
        return {"given": list(given)}, stock.append_column("level", level)

    def restore(self, given: dict[str, list[dict[str, object]]], stock: pa.Table) -> None:
        """Go on where a pool of the same sources stood."""
        self._given = [
            _Yield(int(str(g["blocks"])), np.array(g["levels"], np.int64)) for g in given["given"]
        ]
        level = np.asarray(stock["level"].combine_chunks())
        held = stock.drop_columns(["level"])
        self._stock = held if held.num_columns else None
        self._waiting = _Queues(level, self.levels)

    def _fill(self, wanted: Ints) -> None:
        for source in range(len(self._sources)):
            if not self._given[source].blocks:
                self._read(source, wanted)
        sizes = [g.levels.sum() / g.blocks for g in self._given]
        for _ in range(_TRIES + int(2 * wanted.sum() / max(*sizes, 1))):
            missing = np.maximum(wanted - self._waiting.counts, 0)
            gains = [np.minimum(missing, g.levels / g.blocks).sum() for g in self._given]
            best = int(np.argmax(gains))
            if gains[best] <= _LEAST_GAIN * min(wanted.sum(), sizes[best]):
                return
            self._read(best, wanted)

    def _read(self, source: int, wanted: Ints) -> None:
        given = self._given[source]
        items = self._sources[source].block(given.blocks)
        level = self._scale.level(items) if self._scale else np.zeros(len(items), np.int64)
        given.blocks += 1
        given.levels += np.bincount(level, minlength=self.levels)
        items = items.select(list(_KEPT))
        rows, before = self._waiting.rows(), len(self._waiting.level)
        # What was given goes, and what comes in above the limit: the oldest of a level stay.
        rows = np.concatenate([rows, before + np.arange(len(items))])
        level = np.concatenate([self._waiting.level, level])[rows]
        kept = _Queues(level, self.levels).rows(np.maximum(wanted, _MOST_WAITING))
        stock = pa.concat_tables([self._stock, items]) if self._stock is not None else items
        self._stock = stock.take(pa.array(rows[kept])).combine_chunks()
        self._waiting = _Queues(level[kept], self.levels)


class _Queues:
    """The rows of a stock that wait, a queue for each level.

    level: of every row, (rows,). counts: how many wait of each level, (levels,).
    """

    def __init__(self, level: Ints, levels: int) -> None:
        self.level = level
        self.counts = np.bincount(level, minlength=levels)
        self._order = np.argsort(level, kind="stable")
        self._first = np.cumsum(self.counts) - self.counts

    def take(self, counts: Ints) -> Ints:
        """The first `counts[l]` rows of each level l, which wait no longer."""
        taken = self._heads(counts)
        self._first, self.counts = self._first + counts, self.counts - counts
        return taken

    def rows(self, most: Ints | None = None) -> Ints:
        """The rows that wait, the first `most[l]` of each level l, as they lie in the stock."""
        heads = self._heads(self.counts if most is None else np.minimum(self.counts, most))
        return np.sort(heads)

    def _heads(self, counts: Ints) -> Ints:
        queues = Ragged(self._order, self._first, counts)
        return queues.values[queues.places(np.arange(len(counts)))]


def _made_up(wanted: Ints, present: Ints) -> Ints:
    """What is given of each level: what is wanted and there, and more of others for the rest."""
    counts = np.minimum(wanted, present)
    spare = np.where(wanted > 0, present - counts, 0)
    if not counts.any() and not spare.any():
        spare = present
    left = min(int((wanted - counts).sum()), int(spare.sum()))
    if left > 0:
        # Shares of the spare items, rounded so that they add up.
        upto = np.cumsum(spare) * left // spare.sum()
        counts += np.diff(upto, prepend=0)
    return counts
