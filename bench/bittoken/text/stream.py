"""Endless training text (FineWeb), and the text that is kept for validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from bench.bittoken.data.packing import Samples
from bench.bittoken.text.codec import Encoded, TextCodec
from bench.bittoken.text.documents import documents, text_files
from bench.bittoken.vocabulary import BOS, EOS, NUM
from bench.errors import BadInput

Split = Literal["train", "val"]

_AT_ONCE = 32
"""Documents that are tokenised together."""


class Place(Struct, frozen=True, forbid_unknown_fields=True):
    """The next window: its block of documents, and where in the block it lies.

    epoch, file, document: the first document of the block, as the files have them. taken:
    documents of the (shuffled) block before it. window: windows of its document before it.
    """

    epoch: int = 0
    file: int = 0
    document: int = 0
    taken: int = 0
    window: int = 0


class _State(Struct, frozen=True, forbid_unknown_fields=True):
    """`settings` must be the same for a stream that goes on from `place`."""

    settings: dict[str, object]
    place: Place


class TextStream:
    """Documents of a folder as samples, without end.

    A document is bos, its text, eos, and is cut into windows of at most `context` tokens, each a
    sample. A window begins with the last token of the one before, so that every token but bos is
    predicted once. Documents never share a sample.

    Documents come in the order of the files, shuffled within blocks of `block` documents. The
    content alone decides whether a document is for training or validation (one in `holdout`),
    and which rank gets it: no two ranks see the same text.
    """

    def __init__(
        self,
        folder: Path,
        codec: TextCodec,
        context: int,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        split: Split = "train",
        holdout: int = 100,
        block: int = 1024,
    ) -> None:
        """BadInput for a folder without text, or settings that leave none."""
        if context < 2 or holdout < 2 or block < 1 or not 0 <= rank < world:
            raise BadInput(
                f"no text can be read with context {context}, holdout {holdout}, block {block} and "
                f"rank {rank} of {world}: the first two are at least 2, and ranks count from 0"
            )
        self._folder, self._codec, self._context = folder, codec, context
        self._seed, self._rank, self._world = seed, rank, world
        self._split, self._holdout, self._block = split, holdout, block
        self._files = text_files(folder)
        self._head: Encoded | None = None
        self._go_to(Place())

    @property
    def epoch(self) -> int:
        """How often all documents have been given."""
        return self._place.epoch

    def take(self, tokens: int) -> Samples:
        """The next windows, as many as fit into `tokens`. BadInput if not every window would."""
        if tokens < self._context:
            raise BadInput(f"{tokens} tokens of text are too few: a window has {self._context}")
        taken, room = [], tokens
        while len(self._next().tokens) <= room:
            taken.append(self._next())
            room -= len(taken[-1].tokens)
            self._head = None
        return _packed(taken, self._codec)

    def once(self, tokens: int) -> Iterator[Samples]:
        """One pass over all documents from the beginning, at most `tokens` at a time."""
        if tokens < self._context:
            raise BadInput(f"{tokens} tokens of text are too few: a window has {self._context}")
        taken, room = list[Encoded](), tokens
        for _, window in self._windows(Place()):
            if len(window.tokens) > room:
                yield _packed(taken, self._codec)
                taken, room = [], tokens
            taken.append(window)
            room -= len(window.tokens)
        if taken:
            yield _packed(taken, self._codec)

    def state(self) -> dict[str, Any]:
        """Where the stream stands, for JSON."""
        state: dict[str, Any] = msgspec.to_builtins(_State(self._settings(), self._place))
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where a stream of the same text and settings stood. BadInput if they differ."""
        try:
            found = msgspec.convert(state, _State)
        except msgspec.ValidationError as error:
            raise BadInput(f"the place in the text cannot be read: {error}") from None
        for name, value in self._settings().items():
            if found.settings.get(name) != value:
                raise BadInput(
                    f"the text cannot go on where it stood: {name} was "
                    f"{found.settings.get(name)} and is {value}"
                )
        self._go_to(found.place)

    def _settings(self) -> dict[str, object]:
        sizes = [
            f"{f.relative_to(self._folder).as_posix()} {f.stat().st_size}" for f in self._files
        ]
        return {
            "context": self._context,
            "seed": self._seed,
            "rank": self._rank,
            "world": self._world,
            "split": self._split,
            "holdout": self._holdout,
            "block": self._block,
            "files": _digest("\n".join(sizes)).hex(),
        }

    def _go_to(self, place: Place) -> None:
        self._place = place
        self._head = None
        self._coming = self._endless(place)

    def _next(self) -> Encoded:
        """The window that comes next, without taking it."""
        if self._head is None:
            self._place, self._head = next(self._coming)
        return self._head

    def _endless(self, place: Place) -> Iterator[tuple[Place, Encoded]]:
        while True:
            yield from self._windows(place)
            place = Place(place.epoch + 1)

    def _windows(self, start: Place) -> Iterator[tuple[Place, Encoded]]:
        """The windows from a place to the end of its epoch."""
        for begins, block in self._blocks(start):
            for first in range(begins.taken, len(block), _AT_ONCE):
                texts = self._codec.encode_all(block[first : first + _AT_ONCE])
                for taken, encoded in enumerate(texts, first):
                    skipped = begins.window if taken == begins.taken else 0
                    windows = enumerate(_windows(encoded, self._codec, self._context))
                    for number, window in islice(windows, skipped, None):
                        place = Place(begins.epoch, begins.file, begins.document, taken, number)
                        yield place, window

    def _blocks(self, start: Place) -> Iterator[tuple[Place, list[str]]]:
        """Shuffled documents of this split and rank, to the end of the epoch."""
        block, begins, empty = list[str](), start, start == Place(start.epoch)
        for after, text in self._mine(start):
            block.append(text)
            empty = False
            if len(block) == self._block:
                yield begins, self._shuffled(block, start.epoch)
                block, begins = [], after
        if block:
            yield begins, self._shuffled(block, start.epoch)
        if empty:
            raise BadInput(
                f"{self._folder} holds too little text: none of it is {self._split} text of rank "
                f"{self._rank} (of {self._world}; one document in {self._holdout} is val)"
            )

    def _mine(self, start: Place) -> Iterator[tuple[Place, str]]:
        """Documents of this split and rank, each with the place behind it."""
        for file in range(start.file, len(self._files)):
            first = start.document if file == start.file else 0
            for number, text in enumerate(documents(self._files[file], first), first):
                share = int.from_bytes(_digest(text))
                rest, lot = divmod(share, self._holdout)
                split: Split = "val" if lot == 0 else "train"
                if text and split == self._split and rest % self._world == self._rank:
                    yield Place(start.epoch, file, number + 1), text

    def _shuffled(self, block: list[str], epoch: int) -> list[str]:
        key = f"{self._seed} {epoch}".encode()
        return sorted(block, key=lambda text: _digest(text, key))


def _digest(text: str, key: bytes = b"") -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()


def _windows(text: Encoded, codec: TextCodec, context: int) -> Iterator[Encoded]:
    """A document between bos and eos, in windows that overlap by one token."""
    ids = codec.vocabulary.ids
    tokens = np.concatenate([[ids[BOS]], text.tokens, [ids[EOS]]])
    numbers = np.flatnonzero(tokens == ids[NUM])
    for start in range(0, len(tokens) - 1, context - 1):
        within = slice(*np.searchsorted(numbers, (start, start + context)))
        yield Encoded(tokens[start : start + context], text.values[within])


def _packed(windows: Sequence[Encoded], codec: TextCodec) -> Samples:
    together = Encoded(*(np.concatenate(column) for column in zip(*windows, strict=True)))
    lengths = np.array([len(window.tokens) for window in windows], np.int64)
    return Samples(together.tokens, codec.codes(together), lengths, np.ones_like(lengths))
