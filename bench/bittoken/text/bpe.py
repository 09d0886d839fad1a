"""Byte-level BPE without digits: the text vocabulary, stored as one JSON file."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import msgspec
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from bittoken.text.documents import read_documents
from bittoken.text.number_parsing import text_between_numbers
from numbench import jsonl
from numbench.errors import BadInput

Merge = tuple[str, str]


def _symbols() -> str:
    """Return GPT-2's printable symbol of each byte: itself, or a character from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return "".join(chr(b if b in printable else 256 + others.index(b)) for b in range(256))


SYMBOLS = _symbols()
"""The character that represents each of the 256 bytes in a token."""

DIGITS = frozenset("0123456789")
ALPHABET = [symbol for symbol in SYMBOLS if symbol not in DIGITS]
"""The 246 single-byte tokens of every vocabulary, which can write any text without digits."""

_BYTES = {symbol: byte for byte, symbol in enumerate(SYMBOLS)}


class ByteBpe:
    """A byte-level BPE tokenizer: tokens in the order of their ids, merges in order of application.

    Tokens are spelled with one symbol per byte, as GPT-2's are (`Ġ` is a space). There are no
    special tokens: `<|eos|>` in a text is ordinary text.
    """

    def __init__(self, tokens: Sequence[str], merges: Sequence[Merge]) -> None:
        """Raises ValueError if the tokens cannot write every text, or contain digits."""
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
        """Return the ids of each text. The texts must contain no digit 0-9 and no surrogate."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes of each token."""
        return [bytes(_BYTES[symbol] for symbol in token) for token in self.tokens]

    @cached_property
    def byte_ids(self) -> dict[int, int]:
        """The ids of the single-byte tokens, by byte."""
        return {spelled[0]: i for i, spelled in enumerate(self.token_bytes) if len(spelled) == 1}

    def save(self, path: Path) -> None:
        """Write the file for `load`, which `tokenizers.Tokenizer.from_file` can read too."""
        jsonl.write_atomically(path, self._tokenizer.to_str().encode())

    @classmethod
    def load(cls, path: Path) -> ByteBpe:
        """Load a saved vocabulary. Raises BadInput if `save` cannot have written the file."""
        file = jsonl.read_json(path, _TokenizerFile)
        model = file.model
        tokens = sorted(model.vocab, key=model.vocab.__getitem__)
        try:
            if sorted(model.vocab.values()) != list(range(len(tokens))):
                raise ValueError("its ids are not 0, 1, 2, …")
            if file.added_tokens or file.normalizer is not None:
                raise ValueError("it has added tokens or a normalizer, which change the text")
            return cls(tokens, model.merges)
        except ValueError as error:
            raise BadInput(f"{path} is not the text vocabulary of a small model: {error}") from None


class _BpeModel(msgspec.Struct):
    vocab: dict[str, int]
    merges: list[Merge]


class _TokenizerFile(msgspec.Struct):
    """The fields that are read; all others are the same in every text vocabulary."""

    model: _BpeModel
    added_tokens: list[object]
    normalizer: object


def _check(tokens: Sequence[str], merges: Sequence[Merge]) -> None:
    known = set(tokens)
    if len(known) != len(tokens):
        raise ValueError("it contains a token twice")
    if not known.issuperset(ALPHABET):
        raise ValueError("it lacks single-byte tokens, so that some text cannot be written")
    for token in tokens:
        if not token or not _BYTES.keys() >= set(token):
            raise ValueError(f"{token!r} is not a token of a byte-level vocabulary")
        if not DIGITS.isdisjoint(token):
            raise ValueError(
                f"{token!r} contains a digit, but numbers are not part of the text vocabulary"
            )
    for left, right in merges:
        if not known >= {left, right, left + right}:
            raise ValueError(f"the merge of {left!r} and {right!r} refers to unknown tokens")


_RANKS_HINT = (
    "GPT-2's file is whisper/assets/gpt2.tiktoken in the source distribution of openai-whisper "
    "(pip download --no-deps --no-binary :all: openai-whisper)"
)

GPT2_VOCABULARY_SIZE = 48_565
"""The size of GPT-2's vocabulary without its tokens with digits."""

Ranks = dict[bytes, int]


def load_tiktoken_ranks(path: Path) -> ByteBpe:
    """Load a tiktoken file: a line per token with its bytes in base64 and its rank.

    Tokens with a digit are removed: numbers are tokenized separately and never reach the BPE. Of
    GPT-2's 50,256 tokens 48,565 remain.

    Raises BadInput if the file is missing or damaged.
    """
    ranks = _read_ranks(path)
    digits = bytes(range(ord("0"), ord("9") + 1))
    kept = [token for token in sorted(ranks, key=ranks.__getitem__) if not set(token) & set(digits)]
    merges = (_merge_of(token, ranks) for token in kept if len(token) > 1)
    try:
        return ByteBpe([_to_symbols(token) for token in kept], [m for m in merges if m is not None])
    except ValueError as error:
        raise BadInput(f"{path} is not a byte-level vocabulary: {error}. {_RANKS_HINT}") from None


def train_bpe(files: Sequence[Path], size: int) -> ByteBpe:
    """Train a vocabulary of at most `size` tokens on .txt and Parquet files, without numbers.

    A small text gives fewer tokens. Raises BadInput if a file cannot be read, or `size` is below
    the 246 single bytes.
    """
    if size < len(ALPHABET):
        raise BadInput(f"a text vocabulary has at least {len(ALPHABET)} tokens, not {size}")
    if not files:
        raise BadInput("there are no files to train a text vocabulary on")
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=size, initial_alphabet=ALPHABET, show_progress=False)
    tokenizer.train_from_iterator(_texts(files), trainer)
    model = msgspec.json.decode(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return ByteBpe(tokens, [(left, right) for left, right in model["merges"]])


def _texts(files: Sequence[Path]) -> Iterator[list[str]]:
    for file in files:
        for text in read_documents(file):
            yield text_between_numbers(text)


def _read_ranks(path: Path) -> Ranks:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}). {_RANKS_HINT}") from None
    ranks: Ranks = {}
    for number, line in enumerate(lines, 1):
        if line:
            try:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
            except (ValueError, binascii.Error):
                raise BadInput(
                    f"{path}:{number}: expected a token in base64, a space and its rank. "
                    f"{_RANKS_HINT}"
                ) from None
    return ranks


def _merge_of(token: bytes, ranks: Ranks) -> Merge | None:
    """Return the two tokens that are merged into this one, None if no merges lead to it."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        joined = [ranks.get(left + right) for left, right in pairwise(parts)]
        rank = min((r for r in joined if r is not None), default=None)
        if rank is None:
            return None
        index = joined.index(rank)
        parts[index : index + 2] = [parts[index] + parts[index + 1]]
    left, right = parts
    return _to_symbols(left), _to_symbols(right)


def _to_symbols(token: bytes) -> str:
    return "".join(SYMBOLS[byte] for byte in token)
