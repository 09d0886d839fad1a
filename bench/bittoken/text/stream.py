"""Endless, resumable streams of text (FineWeb) for training and validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from bittoken.data.packing import Samples
from bittoken.text.codec import EncodedText, TextCodec
from bittoken.text.documents import read_documents, text_files
from bittoken.vocabulary import BOS, EOS, NUM
from numbench.errors import BadInput

Split = Literal["train", "val"]

_DOCUMENTS_PER_BATCH = 32
"""Number of documents that are tokenized together."""


class StreamPosition(Struct, frozen=True, forbid_unknown_fields=True):
    """The position of the next window in a stream.

    epoch, file, document: the first document of its block. taken: number of documents of the
    shuffled block that precede the window's document. window: number of windows of the document
    that precede it. For example, (0, 2, 100, 3, 1) is the second window of the fourth document in
    the block that starts at document 100 of the third file, in the first epoch.
    """

    epoch: int = 0
    file: int = 0
    document: int = 0
    taken: int = 0
    window: int = 0


class _State(Struct, frozen=True, forbid_unknown_fields=True):
    """A saved stream. It resumes at `place` only if all `settings` are the same."""

    settings: dict[str, object]
    place: StreamPosition


class TextStream:
    """Endless samples from the documents of a folder.

    A document is bos, its text and eos, split into windows of at most `context` tokens; each window
    is a sample. A window starts with the last token of the previous one, so that every token but
    bos is predicted once. A sample never spans documents.

    Documents are read in the order of the files and shuffled within blocks of `block` documents.
    A document's content alone determines its split (one in `holdout` is for validation) and its
    rank, so that no two ranks get the same text.
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
        """Raises BadInput if the folder has no text, or a setting is out of range."""
        if context < 2 or holdout < 2 or block < 1 or not 0 <= rank < world:
            raise BadInput(
                f"cannot read text with context {context}, holdout {holdout}, block {block} and "
                f"rank {rank} of {world}; context and holdout must be at least 2, block at least "
                "1, and ranks count from 0"
            )
        self._folder, self._codec, self._context = folder, codec, context
        self._seed, self._rank, self._world = seed, rank, world
        self._split, self._holdout, self._block = split, holdout, block
        self._files = text_files(folder)
        self._next_window: EncodedText | None = None
        self._seek(StreamPosition())

    @property
    def epoch(self) -> int:
        """Number of complete passes over the documents."""
        return self._position.epoch

    def take(self, tokens: int) -> Samples:
        """Return the next windows, as many as fit into `tokens`.

        Raises BadInput if `tokens` is less than a window may have.
        """
        self._check_budget(tokens)
        windows, remaining = [], tokens
        while len(self._peek().tokens) <= remaining:
            windows.append(self._peek())
            remaining -= len(windows[-1].tokens)
            self._next_window = None
        return _pack(windows, self._codec)

    def single_pass(self, tokens: int) -> Iterator[Samples]:
        """Yield all windows of one pass over the documents, at most `tokens` at a time."""
        self._check_budget(tokens)
        windows, remaining = list[EncodedText](), tokens
        for _, window in self._windows(StreamPosition()):
            if len(window.tokens) > remaining:
                yield _pack(windows, self._codec)
                windows, remaining = [], tokens
            windows.append(window)
            remaining -= len(window.tokens)
        if windows:
            yield _pack(windows, self._codec)

    def _check_budget(self, tokens: int) -> None:
        if tokens < self._context:
            raise BadInput(f"{tokens} tokens are too few for a window of text ({self._context})")

    def state(self) -> dict[str, Any]:
        """Return the settings and the position, for JSON."""
        state: dict[str, Any] = msgspec.to_builtins(_State(self._settings(), self._position))
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue at a saved position. Raises BadInput if the text or a setting has changed."""
        try:
            saved = msgspec.convert(state, _State)
        except msgspec.ValidationError as error:
            raise BadInput(f"the saved position in the text is invalid: {error}") from None
        for name, value in self._settings().items():
            if saved.settings.get(name) != value:
                raise BadInput(
                    f"cannot resume the text stream: {name} was {saved.settings.get(name)} "
                    f"and is now {value}"
                )
        self._seek(saved.place)

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

    def _seek(self, position: StreamPosition) -> None:
        self._position = position
        self._next_window = None
        self._upcoming = self._endless(position)

    def _peek(self) -> EncodedText:
        """Return the next window without consuming it."""
        if self._next_window is None:
            self._position, self._next_window = next(self._upcoming)
        return self._next_window

    def _endless(self, position: StreamPosition) -> Iterator[tuple[StreamPosition, EncodedText]]:
        while True:
            yield from self._windows(position)
            position = StreamPosition(position.epoch + 1)

    def _windows(self, start: StreamPosition) -> Iterator[tuple[StreamPosition, EncodedText]]:
        """Yield the windows from a position to the end of its epoch."""
        for block_start, block in self._blocks(start):
            for first in range(block_start.taken, len(block), _DOCUMENTS_PER_BATCH):
                texts = self._codec.encode_batch(block[first : first + _DOCUMENTS_PER_BATCH])
                for taken, encoded in enumerate(texts, first):
                    skipped = block_start.window if taken == block_start.taken else 0
                    windows = enumerate(_windows(encoded, self._codec, self._context))
                    for number, window in islice(windows, skipped, None):
                        yield (
                            msgspec.structs.replace(block_start, taken=taken, window=number),
                            window,
                        )

    def _blocks(self, start: StreamPosition) -> Iterator[tuple[StreamPosition, list[str]]]:
        """Yield blocks of shuffled documents of this split and rank, to the end of the epoch."""
        block, block_start = list[str](), start
        is_empty = start == StreamPosition(start.epoch)
        for next_position, text in self._documents_of_rank(start):
            block.append(text)
            is_empty = False
            if len(block) == self._block:
                yield block_start, self._shuffled(block, start.epoch)
                block, block_start = [], next_position
        if block:
            yield block_start, self._shuffled(block, start.epoch)
        if is_empty:
            raise BadInput(
                f"{self._folder} contains too little text: no {self._split} document for rank "
                f"{self._rank} of {self._world} (one document in {self._holdout} is val)"
            )

    def _documents_of_rank(self, start: StreamPosition) -> Iterator[tuple[StreamPosition, str]]:
        """Yield the documents of this split and rank, each with the position after it."""
        for file in range(start.file, len(self._files)):
            first = start.document if file == start.file else 0
            for number, text in enumerate(read_documents(self._files[file], first), first):
                quotient, remainder = divmod(int.from_bytes(_digest(text)), self._holdout)
                split: Split = "val" if remainder == 0 else "train"
                if text and split == self._split and quotient % self._world == self._rank:
                    yield StreamPosition(start.epoch, file, number + 1), text

    def _shuffled(self, block: list[str], epoch: int) -> list[str]:
        key = f"{self._seed} {epoch}".encode()
        return sorted(block, key=lambda text: _digest(text, key))


def _digest(text: str, key: bytes = b"") -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()


def _windows(text: EncodedText, codec: TextCodec, context: int) -> Iterator[EncodedText]:
    """Yield a document with bos and eos, in windows that overlap by one token."""
    ids = codec.vocabulary.ids
    tokens = np.concatenate([[ids[BOS]], text.tokens, [ids[EOS]]])
    numbers = np.flatnonzero(tokens == ids[NUM])
    for start in range(0, len(tokens) - 1, context - 1):
        within = slice(*np.searchsorted(numbers, (start, start + context)))
        yield EncodedText(tokens[start : start + context], text.values[within])


def _pack(windows: Sequence[EncodedText], codec: TextCodec) -> Samples:
    joined = EncodedText(*(np.concatenate(column) for column in zip(*windows, strict=True)))
    lengths = np.array([len(window.tokens) for window in windows], np.int64)
    return Samples(joined.tokens, codec.codes(joined), lengths, np.ones_like(lengths))
