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
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bittoken.encodings.base import FloatArray, IntArray
from bittoken.recipe import TEXT
from bittoken.tokens import BOS, EOS, MINUS, NUM, Samples, Vocabulary, pack
from numbench.decimal_numbers import format_decimal, parse_decimal
from numbench.errors import BadInput
from numbench.jsonl import read_json, write_atomically
from numbench.tasks.random_words import RandomStream

Split = Literal["train", "val"]

COLUMN = "text"
"""The column of a Parquet file that contains documents."""

HOLDOUT = 100
"""One document in so many is for validation, determined by its content."""

NUMBER_PATTERN = r"-?(?:0(?!\.[0-9])|[0-9]*[.][0-9]+|[1-9][0-9]*)"
"""The paper's pattern of a signed number. Every digit 0-9 of a text is part of a match."""

_MAX_DIGITS = 15
"""Decimals with up to this many significant digits map to distinct float64 values."""

_NUMBER = re.compile(f"({NUMBER_PATTERN})")
_DIGITS = frozenset("0123456789")
_MIN_DOCUMENT_CHARACTERS = 2_000
_DOCUMENTS_PER_BATCH, _WINDOWS_PER_BATCH = 32, 8
_MAX_PIECES_WITHOUT_TEXT = 100


class Piece(NamedTuple):
    """A part of a file that is read at once: a row group, or all of a text file."""

    file: Path
    number: int

    def documents(self) -> list[str]:
        """Return the documents. Raises BadInput if the file cannot be read.

        Plain text is divided at line ends into documents of at least 2,000 characters.
        """
        try:
            if self.file.suffix == ".parquet":
                group = pq.ParquetFile(self.file).read_row_group(self.number, columns=[COLUMN])
                return [str(text) for text in group.column(0).to_pylist() if text]
            return _split_lines(self.file.read_bytes().decode("utf-8"))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{self.file}: cannot read it ({_first_line(error)})") from None


def text_pieces(folder: Path) -> list[Piece]:
    """Return all parts of the .parquet and .txt files under a folder.

    Raises BadInput if there are none, or if a Parquet file has no text.
    """
    if not folder.is_dir():
        raise BadInput(
            f"folder {folder} does not exist; put FineWeb's .parquet files or .txt files there, "
            "or name another folder"
        )
    pieces = []
    for file in sorted(folder.rglob("*")):
        count = 0
        if file.suffix == ".txt":
            count = 1
        elif file.suffix == ".parquet":
            count = _count_row_groups(file)
        pieces += [Piece(file, number) for number in range(count)]
    if not pieces:
        raise BadInput(f"{folder} contains no text: no .parquet (column {COLUMN!r}) or .txt files")
    return pieces


def _count_row_groups(file: Path) -> int:
    try:
        table = pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{file}: cannot read it ({_first_line(error)})") from None
    if COLUMN not in table.schema_arrow.names:
        raise BadInput(
            f"{file} has no column {COLUMN!r}; its columns: {', '.join(table.schema_arrow.names)}"
        )
    count: int = table.num_row_groups
    return count


def _split_lines(text: str) -> list[str]:
    documents, lines, size = list[str](), list[str](), 0
    for line in text.splitlines(keepends=True):
        lines.append(line)
        size += len(line)
        if size >= _MIN_DOCUMENT_CHARACTERS:
            documents.append("".join(lines))
            lines, size = [], 0
    return [*documents, "".join(lines)] if lines else documents


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def make_tokenizer(path: Path, text: Path, vocabulary: str | None, size: int) -> None:
    """Write the text vocabulary of a training, in the format of `tokenizers`.

    vocabulary: a tokenizer.json of GPT-2's kind (byte-level BPE). Its tokens with digits are left
    out: numbers are tokenized separately. Without it, a vocabulary of at most `size` tokens is
    trained on the folder `text`.

    Raises BadInput if the vocabulary or the text cannot be read.
    """
    if vocabulary is None:
        content = json.loads(_trained_tokenizer(text, size).to_str())
    else:
        content = read_json(Path(vocabulary), dict[str, Any])
    try:
        reduced = json.dumps(_without_digits(content))
        Tokenizer.from_str(reduced)
    except Exception as error:  # noqa: BLE001  tokenizers raises nothing more specific
        raise BadInput(f"{vocabulary}: not a byte-level BPE tokenizer ({error!r})") from None
    write_atomically(path, reduced.encode())


def _trained_tokenizer(text: Path, size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set("0123456789"))
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    documents = (document for piece in text_pieces(text) for document in piece.documents())
    tokenizer.train_from_iterator((_NUMBER.split(document)[::2] for document in documents), trainer)
    return tokenizer


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
    unused: dict[str, Any] = {"added_tokens": [], "normalizer": None, "post_processor": None}
    byte_level = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True
    }  # fmt: skip
    reduced = {"model": {**model, "vocab": ids, "merges": merges}, "pre_tokenizer": byte_level}
    return {**content, **unused, **reduced}


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

    def draw(self, split: Split, key: int, tokens: int) -> Samples:
        """Return windows of random documents, with about this many tokens in total."""
        generator = np.random.Philox(key=RandomStream(self._seed, TEXT, split, key).philox_key())
        windows, total, without_text = list[EncodedText](), 0, 0
        while total < tokens:
            piece = self._pieces[int(generator.random_raw()) % len(self._pieces)]
            documents = [text for text in piece.documents() if split_of(text) == split]
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
        return self._samples(windows)

    def single_pass(self, split: Split) -> Iterator[Samples]:
        """Yield all windows of a split, a few at a time."""
        documents = (d for piece in self._pieces for d in piece.documents() if split_of(d) == split)
        windows = self._windows(documents)
        while some := list(islice(windows, _WINDOWS_PER_BATCH)):
            yield self._samples(some)

    def _windows(self, documents: Iterable[str]) -> Iterator[EncodedText]:
        remaining = iter(documents)
        while texts := list(islice(remaining, _DOCUMENTS_PER_BATCH)):
            for tokens, values in self.encode(texts):
                for start in range(0, len(tokens) - 1, self._context - 1):
                    window = slice(start, start + self._context)
                    yield EncodedText(tokens[window], values[window])

    def _samples(self, windows: Sequence[EncodedText]) -> Samples:
        tokens = [window.tokens for window in windows]
        values = np.concatenate([window.values for window in windows])
        is_number = np.concatenate(tokens) == self._vocabulary.number_id
        # The first token has no context to be predicted from.
        return pack(tokens, values[is_number], [1] * len(tokens), self._vocabulary)

    def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        """Return the tokens of documents, from bos to eos."""
        split = [_NUMBER.split(text) for text in texts]
        between = [part for parts in split for part in parts[::2]]
        ids = iter(self._tokenizer.encode_batch_fast(between))
        offset, known = len(self._vocabulary.base_tokens), self._vocabulary.ids
        encoded = []
        for parts in split:
            tokens, values = [known[BOS]], [0.0]
            for number, part in enumerate(parts):
                if number % 2:
                    new, value = self._number(part)
                    values += [0.0] * (len(new) - 1) + [value]
                else:
                    new = [offset + token for token in next(ids).ids]
                    values += [0.0] * len(new)
                tokens += new
            encoded.append(EncodedText(np.array([*tokens, known[EOS]]), np.array([*values, 0.0])))
        return encoded

    def _number(self, text: str) -> tuple[list[int], float]:
        """Return the tokens of a number, and the value of the last one if it is [NUM], else 0."""
        ids, encoding = self._vocabulary.ids, self._vocabulary.encoding
        value = None if encoding is None else canonical_value(text)
        if value is None or encoding is None:
            return [ids[piece] for piece in self._spelled.findall(text)], 0.0
        if value < 0 and not encoding.signed:
            return [ids[MINUS], ids[NUM]], -value
        return [ids[NUM]], value


class EncodedText(NamedTuple):
    """Tokens of a text, (T,), and the value of each token that is a number, 0 for the others."""

    tokens: IntArray
    values: FloatArray


def canonical_value(text: str) -> float | None:
    """Return the number in the benchmark's range whose canonical decimal form is `text`.

    >>> [canonical_value(text) for text in ("3.1", "3.10", "-.5", "12345678901234567")]
    [3.1, None, None, None]
    """
    value = float(text)
    is_in_range = value == 0 or 1e-14 <= abs(value) < 1e15
    if not is_in_range or len(text.lstrip("-").replace(".", "").strip("0")) > _MAX_DIGITS:
        return None
    return value if format_decimal(parse_decimal(repr(value))) == text else None


def split_of(text: str) -> Split:
    """Return the split of a document, which its content alone determines."""
    digest = blake2b(text.encode(), digest_size=8).digest()
    return "val" if int.from_bytes(digest) % HOLDOUT == 0 else "train"
