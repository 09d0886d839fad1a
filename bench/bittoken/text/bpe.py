"""Byte-level BPE without digits: the text vocabulary, kept as one JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from bench import jsonl
from bench.errors import BadInput

Merge = tuple[str, str]


def _symbols() -> str:
    """GPT-2's printable stand-in of each byte: itself, or the next character from U+0100 on."""
    own = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in own]
    return "".join(chr(b if b in own else 256 + others.index(b)) for b in range(256))


SYMBOLS = _symbols()
"""The character that stands for each of the 256 bytes in an entry."""

DIGITS = frozenset("0123456789")
ALPHABET = [symbol for symbol in SYMBOLS if symbol not in DIGITS]
"""The 246 entries that every vocabulary has, so that any text without digits can be written."""

_BYTES = {symbol: byte for byte, symbol in enumerate(SYMBOLS)}


class ByteBpe:
    """Entries, in the order of their ids, and merges, in the order in which they apply.

    Entries are spelled with one symbol a byte, as GPT-2 does (`Ġ` is a space). No special tokens:
    `<|eos|>` in a text is text.
    """

    def __init__(self, tokens: Sequence[str], merges: Sequence[Merge]) -> None:
        """ValueError where some text could not be written, or a number could be."""
        _check(tokens, merges)
        self.tokens = tuple(tokens)
        self.merges = tuple(merges)
        ids = {token: number for number, token in enumerate(tokens)}
        self._tokenizer = Tokenizer(BPE(vocab=ids, merges=list(merges)))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.decoder = decoders.ByteLevel()

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text. The texts hold no digit 0-9 and no surrogate."""
        return [found.ids for found in self._tokenizer.encode_batch_fast(list(texts))]

    @cached_property
    def spellings(self) -> list[bytes]:
        """The bytes of each entry."""
        return [bytes(_BYTES[symbol] for symbol in token) for token in self.tokens]

    @cached_property
    def byte_ids(self) -> dict[int, int]:
        """The id of the entry that is one byte, by byte."""
        return {spelled[0]: i for i, spelled in enumerate(self.spellings) if len(spelled) == 1}

    def save(self, path: Path) -> None:
        """Write the file that `load`, and `tokenizers.Tokenizer.from_file`, read."""
        jsonl.write_atomically(path, self._tokenizer.to_str().encode())

    @classmethod
    def load(cls, path: Path) -> ByteBpe:
        """BadInput for a file that `save` did not write."""
        file = jsonl.read_json(path, _File)
        model = file.model
        tokens = sorted(model.vocab, key=model.vocab.__getitem__)
        try:
            if sorted(model.vocab.values()) != list(range(len(tokens))):
                raise ValueError("its ids are not 0, 1, 2, …")
            if file.added_tokens or file.normalizer is not None:
                raise ValueError("added tokens and normalizers would change the text")
            return cls(tokens, model.merges)
        except ValueError as error:
            raise BadInput(f"{path} is no text vocabulary of a small model: {error}") from None


class _Model(msgspec.Struct):
    vocab: dict[str, int]
    merges: list[Merge]


class _File(msgspec.Struct):
    """What of the file matters; the rest is the same for all text vocabularies."""

    model: _Model
    added_tokens: list[object]
    normalizer: object


def _check(tokens: Sequence[str], merges: Sequence[Merge]) -> None:
    known = set(tokens)
    if len(known) != len(tokens):
        raise ValueError("an entry stands in it twice")
    if not known.issuperset(ALPHABET):
        raise ValueError("it lacks single bytes, so that some text could not be written")
    for token in tokens:
        if not token or not _BYTES.keys() >= set(token):
            raise ValueError(f"{token!r} is no entry of a byte-level vocabulary")
        if not DIGITS.isdisjoint(token):
            raise ValueError(f"{token!r} holds a digit, but numbers are no text")
    for left, right in merges:
        if not known >= {left, right, left + right}:
            raise ValueError(f"the merge of {left!r} and {right!r} names no entries")
