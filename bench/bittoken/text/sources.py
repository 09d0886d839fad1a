"""Where a text vocabulary comes from: GPT-2's ranks, or text at hand."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from bench.bittoken.text.bpe import ALPHABET, SYMBOLS, ByteBpe, Merge
from bench.bittoken.text.documents import documents
from bench.bittoken.text.numbers import without_numbers
from bench.errors import BadInput

_GET_RANKS = (
    "GPT-2's is whisper/assets/gpt2.tiktoken in the source distribution of openai-whisper "
    "(pip download --no-deps --no-binary :all: openai-whisper)"
)

GPT2_ENTRIES = 48_565
"""What stays of GPT-2's vocabulary without digits."""

Ranks = dict[bytes, int]


def from_ranks(path: Path) -> ByteBpe:
    """The vocabulary of a tiktoken file: a line per entry, its bytes in base64 and its rank.

    Entries that hold a digit are left out: every number is one, and none is reached, because
    numbers never come to the BPE. Of GPT-2's 50,256 entries 48,565 stay.

    BadInput for a file that is missing or broken.
    """
    ranks = _read_ranks(path)
    digits = bytes(range(ord("0"), ord("9") + 1))
    kept = [token for token in sorted(ranks, key=ranks.__getitem__) if not set(token) & set(digits)]
    merges = (_halves(token, ranks) for token in kept if len(token) > 1)
    try:
        return ByteBpe([_symbols(token) for token in kept], [m for m in merges if m is not None])
    except ValueError as error:
        raise BadInput(f"{path} is no byte-level vocabulary: {error}. {_GET_RANKS}") from None


def train(files: Sequence[Path], size: int) -> ByteBpe:
    """At most `size` entries learned from .txt and Parquet files, numbers left out.

    A small text gives fewer. BadInput for files that cannot be read, or a size below the 246
    single bytes.
    """
    if size < len(ALPHABET):
        raise BadInput(f"a text vocabulary has at least {len(ALPHABET)} entries; {size} are asked")
    if not files:
        raise BadInput("there are no files to learn a text vocabulary from")
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=size, initial_alphabet=ALPHABET, show_progress=False)
    tokenizer.train_from_iterator(_texts(files), trainer)
    model = msgspec.json.decode(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return ByteBpe(tokens, [(left, right) for left, right in model["merges"]])


def _texts(files: Sequence[Path]) -> Iterator[list[str]]:
    for file in files:
        for text in documents(file):
            yield without_numbers(text)


def _read_ranks(path: Path) -> Ranks:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}). {_GET_RANKS}") from None
    ranks: Ranks = {}
    for number, line in enumerate(lines, 1):
        if line:
            try:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
            except (ValueError, binascii.Error):
                raise BadInput(
                    f"{path}:{number}: a line is an entry in base64, a space and its rank. "
                    f"{_GET_RANKS}"
                ) from None
    return ranks


def _halves(token: bytes, ranks: Ranks) -> Merge | None:
    """The two entries that are merged into this one; None where merges do not lead to it."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        joined = [ranks.get(left + right) for left, right in pairwise(parts)]
        rank = min((r for r in joined if r is not None), default=None)
        if rank is None:
            return None
        place = joined.index(rank)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    left, right = parts
    return _symbols(left), _symbols(right)


def _symbols(token: bytes) -> str:
    return "".join(SYMBOLS[byte] for byte in token)
