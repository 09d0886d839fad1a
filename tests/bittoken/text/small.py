"""A small text vocabulary in GPT-2's format, and test documents."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bittoken.encodings.base import Codes, FloatArray
from bittoken.encodings.bittoken import BitToken
from bittoken.text.bpe import ALPHABET, ByteBpe
from bittoken.text.codec import TextCodec
from bittoken.vocabulary import Vocabulary

ENTRIES = [
    b"th", b"the", b"in", b" t", b" the", b"12", b" 1", b" 12", b"  ", b"<|", b"an", b"and",
    b"qzx", b"zx", b"unreached",
]  # fmt: skip
"""Tokens in the order of their ranks, after the 256 bytes."""

SMALL = ByteBpe(
    [*ALPHABET, "th", "the", "in", "Ġt", "Ġthe", "ĠĠ"],
    [("t", "h"), ("th", "e"), ("i", "n"), ("Ġ", "t"), ("Ġ", "the"), ("Ġ", "Ġ")],
)


class Unsigned(BitToken):
    """An unsigned encoding with a limited range: absolute values below a million."""

    signed = False

    def encode(self, values: FloatArray) -> Codes:
        return super().encode(np.minimum(np.abs(values), 1e6))


class Rough(BitToken):
    """An encoding that is never exact: values are slightly too large, at most 10^9."""

    def encode(self, values: FloatArray) -> Codes:
        return super().encode(np.clip(values, -1e9, 1e9) * (1 + 1e-5))


def codec(encoding: str = "bittoken", bpe: ByteBpe = SMALL) -> TextCodec:
    return TextCodec(Vocabulary(encoding, bpe.tokens), bpe)


def codec_with(encoding: BitToken) -> TextCodec:
    vocabulary = Vocabulary("bittoken", SMALL.tokens)
    vocabulary.encoding = encoding
    return TextCodec(vocabulary, SMALL)


def rank_file(path: Path, entries: Sequence[bytes] = ENTRIES) -> Path:
    """Write all bytes and then the entries in tiktoken's format."""
    tokens = [*(bytes([byte]) for byte in range(256)), *entries]
    lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
    path.write_text("\n".join(lines) + "\n")
    return path


def parquet(path: Path, texts: Sequence[str | None], group: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": list(range(len(texts))), "text": pa.array(texts, pa.string())})
    pq.write_table(table, path, row_group_size=group)
    return path


def documents(count: int, start: int = 0) -> list[str]:
    """Return distinct documents of different lengths, with numbers."""
    return [f"Document the {i} costs {i}.5 in " + "the end " * (i % 7) for i in range(start, count)]
