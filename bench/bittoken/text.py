"""Text next to numbers: documents, the text vocabulary, and windows of tokens.

A training draws windows at random, as a pure function of the seed and the number of a chunk, so
that nothing has to be saved to resume it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from tokenizers import Tokenizer, pre_tokenizers

from bittoken.recipe import TEXT
from bittoken.tokens import BOS, EOS, Sample, Vocabulary, write_numbers
from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS, format_decimal, parse_decimal
from numbench.core.jsonl import read_json, write_atomically
from numbench.errors import BadInput
from numbench.tasks.random_words import RandomStream

Split = Literal["train", "val"]

COLUMN = "text"
"""The column of a Parquet file that contains documents."""

HOLDOUT = 100
"""One document in so many is for validation, determined by its content."""

NUMBER_PATTERN = r"-?(?:0(?!\.[0-9])|[0-9]*[.][0-9]+|[1-9][0-9]*)"
"""The paper's pattern of a signed number. Every digit 0-9 of a text is part of a match."""

_NUMBER = re.compile(f"({NUMBER_PATTERN})")
_DIGITS = frozenset("0123456789")
_DOCUMENTS_PER_BATCH = 32
_MAX_PIECES_WITHOUT_TEXT = 100


def text_pieces(folder: Path) -> list[ds.ParquetFileFragment]:
    """Return the row groups of the .parquet files under a folder.

    Raises BadInput if there are none, or if a file cannot be read or has no text.
    """
    files = sorted(map(str, folder.rglob("*.parquet")))
    if not files:
        raise BadInput(
            f"{folder} contains no .parquet files; put those of FineWeb there, or name another "
            "folder"
        )
    try:
        data = ds.dataset(files, format="parquet")
        pieces = [piece for file in data.get_fragments() for piece in file.split_by_row_group()]
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{folder}: cannot read its .parquet files ({reason})") from None
    if COLUMN not in data.schema.names:
        raise BadInput(
            f"{files[0]} has no column {COLUMN!r}; its columns: {', '.join(data.schema.names)}"
        )
    return pieces


def read_documents(piece: ds.ParquetFileFragment, split: Split) -> list[str]:
    """Return the documents of a split in a row group."""
    # Without threads, which a process that prepares batches may not share with its parent.
    texts = piece.to_table(columns=[COLUMN], use_threads=False)[COLUMN].to_pylist()
    return [text for text in texts if text and split_of(text) == split]


def make_tokenizer(path: Path, vocabulary: Path) -> None:
    """Write the text vocabulary of a training, in the format of `tokenizers`.

    vocabulary: a tokenizer.json of GPT-2's kind (byte-level BPE). Its tokens with digits are left
    out: numbers are tokenized separately.

    Raises BadInput if it cannot be read.
    """
    content = read_json(vocabulary, dict[str, Any])
    try:
        reduced = json.dumps(_without_digits(content))
        Tokenizer.from_str(reduced)
    except Exception as error:  # noqa: BLE001  tokenizers raises nothing more specific
        raise BadInput(f"{vocabulary}: not a byte-level BPE tokenizer ({error!r})") from None
    write_atomically(path, reduced.encode())


def _without_digits(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a tokenizer without special tokens and tokens with digits."""
    model = content["model"]
    kept = [t for t in sorted(model["vocab"], key=model["vocab"].get) if not set(t) & _DIGITS]
    missing = set(pre_tokenizers.ByteLevel.alphabet()) - _DIGITS - set(kept)
    if missing:
        raise ValueError(f"it has no token for {sorted(missing)[0]!r}")
    ids = {token: number for number, token in enumerate(kept)}
    pairs = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    merges = [pair for pair in pairs if "".join(pair) in ids]
    byte_level = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True
    }  # fmt: skip
    return {
        **content,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "model": {**model, "vocab": ids, "merges": merges},
    }


class TextData:
    """The documents of a folder as windows of tokens.

    A document is bos, its text and eos, divided into windows of at most `context` tokens; each
    window is a sample. A window starts with the last token of the previous one, so that every token
    but bos is predicted once. A sample never spans documents.

    A number in the text is one [NUM] token if it is written in its canonical decimal form, with at
    most 15 digits and in the range of the benchmark. All others (`3.10`, `007`), and all numbers
    for an encoding without [NUM], are written in tokens for digits, `.` and `-`.
    """

    def __init__(
        self, folder: Path, tokenizer: Path, vocabulary: Vocabulary, context: int, seed: int = 0
    ) -> None:
        """Raises BadInput if the folder has no text."""
        self._folder, self._vocabulary, self._context = folder, vocabulary, context
        self._seed, self._pieces = seed, text_pieces(folder)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._spelled = re.compile(f"[0-9]{{1,{vocabulary.digits_per_token or 1}}}|[-.]")

    def draw(self, split: Split, key: int, tokens: int) -> list[Sample]:
        """Return windows of random documents, with about this many tokens in total."""
        generator = np.random.Philox(key=RandomStream(self._seed, TEXT, split, key).philox_key())
        windows, total, without_text = list[Sample](), 0, 0
        while total < tokens:
            piece = self._pieces[int(generator.random_raw()) % len(self._pieces)]
            documents = read_documents(piece, split)
            order = np.argsort(generator.random_raw(len(documents)), kind="stable").tolist()
            for window in self._windows(documents[index] for index in order):
                windows.append(window)
                total += len(window.tokens)
                if total >= tokens:
                    break
            without_text = 0 if documents else without_text + 1
            if without_text == _MAX_PIECES_WITHOUT_TEXT:
                raise BadInput(
                    f"{self._folder} contains too little text: no {split} document (one document "
                    f"in {HOLDOUT} is val)"
                )
        return windows

    def _windows(self, documents: Iterable[str]) -> Iterator[Sample]:
        remaining, number_id = iter(documents), self._vocabulary.number_id
        while texts := list(islice(remaining, _DOCUMENTS_PER_BATCH)):
            for text in self.encode(texts):
                # The number tokens before each token.
                before = np.cumsum([0, *(token == number_id for token in text.tokens)])
                for start in range(0, len(text.tokens) - 1, self._context - 1):
                    end = min(start + self._context, len(text.tokens))
                    values = text.values[before[start] : before[end]]
                    yield Sample(text.tokens[start:end], values, 1)

    def encode(self, texts: Sequence[str]) -> list[Sample]:
        """Return documents, from bos to eos."""
        split = [_NUMBER.split(text) for text in texts]
        between = [part for parts in split for part in parts[::2]]
        ids = iter(self._tokenizer.encode_batch_fast(between))
        offset, known = len(self._vocabulary.base_tokens), self._vocabulary.ids
        encoded = []
        for parts in split:
            tokens, values = [known[BOS]], list[float]()
            for number, part in enumerate(parts):
                if number % 2:
                    new, value = self._number(part)
                    tokens += new
                    values += value
                else:
                    tokens += [offset + token for token in next(ids).ids]
            # The first token has no context to be predicted from.
            encoded.append(Sample([*tokens, known[EOS]], values, 1))
        return encoded

    def _number(self, text: str) -> tuple[list[int], list[float]]:
        """Return the tokens of a number, and the value of the [NUM] token if there is one."""
        if self._vocabulary.encoding is None or canonical_value(text) is None:
            return [self._vocabulary.ids[piece] for piece in self._spelled.findall(text)], []
        (written,), values = write_numbers([text], self._vocabulary)
        return self._vocabulary.split(written), values


def canonical_value(text: str) -> float | None:
    """Return the number in the benchmark's range whose canonical decimal form is `text`.

    >>> [canonical_value(text) for text in ("3.1", "3.10", "-.5", "12345678901234567")]
    [3.1, None, None, None]
    """
    value = float(text)
    is_in_range = value == 0 or 1e-14 <= abs(value) < 1e15
    if not is_in_range or len(text.lstrip("-").replace(".", "").strip("0")) > SIGNIFICANT_DIGITS:
        return None
    return value if format_decimal(parse_decimal(repr(value))) == text else None


def split_of(text: str) -> Split:
    """Return the split of a document, which its content alone determines."""
    digest = blake2b(text.encode(), digest_size=8).digest()
    return "val" if int.from_bytes(digest) % HOLDOUT == 0 else "train"
