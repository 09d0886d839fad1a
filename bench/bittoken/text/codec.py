"""Text ↔ tokens, without loss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.bittoken.data.packing import Ints
from bench.bittoken.encodings.base import Codes, Floats, NumberEncoding
from bench.bittoken.text.bpe import ByteBpe
from bench.bittoken.text.numbers import NUMBER, spelling, value_of
from bench.bittoken.vocabulary import MINUS, NUM, POINT, Vocabulary
from bench.errors import BadInput

_CLOSE = 1e-3
"""How far off (relatively) an encoding that is never exact may be and still hold a number."""

_PROBES = np.array([0.1, 7.0, 0.123456789012345, 2.71828182845905, 31415.9265358979])
"""An encoding that returns these is exact, at least within some range."""

_SURROGATE = "[\ud800-\udfff]"
_NUMBER = re.compile(f"({NUMBER}|{_SURROGATE})")
_NUMBERS = re.compile(f"((?:{NUMBER})+|{_SURROGATE})")


class Encoded(NamedTuple):
    """tokens: ids, shape (T,). values: the numbers at the [NUM] tokens, in their order."""

    tokens: Ints
    values: Floats


_Written = dict[str, tuple[list[int], float | None]]


class TextCodec:
    """Text as tokens of a vocabulary; `decode` gives back every text that was encoded.

    A number is one [NUM] where its plain spelling is the text's own and the encoding returns the
    same value; with an unsigned encoding the `-` token stands before it. All other numbers
    (`3.10`, `-0`, more than 15 digits, what is out of range) are spelled with the digit, `.`
    and `-` tokens. An encoding that is exact for no number (xVal) holds those that it returns
    nearly: `values` are still the text's, and the rounding is the encoding's own.
    """

    def __init__(self, vocabulary: Vocabulary, bpe: ByteBpe) -> None:
        """BadInput where `vocabulary` was not made with the entries of `bpe`."""
        self.first = len(vocabulary.own)
        if vocabulary.tokens[self.first :] != bpe.tokens:
            raise BadInput(
                "the vocabulary and the text vocabulary beside it do not belong together"
            )
        self.vocabulary = vocabulary
        self._bpe = bpe
        self._split = (_NUMBERS if vocabulary.encoding is None else _NUMBER).split
        self._pieces = re.compile(f"[0-9]{{1,{vocabulary.group or 1}}}|[-.]").findall
        self._spellings = [token.encode() for token in vocabulary.own] + bpe.spellings

    def encode(self, text: str) -> Encoded:
        """The tokens of a text; no special token is ever among them."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[Encoded]:
        """`encode` of many texts at once, which is faster."""
        parts = [self._split(text) for text in texts]
        between = self._bpe.encode([piece for part in parts for piece in part[::2]])
        numbers = self._numbers({piece for part in parts for piece in part[1::2]})
        encoded, done = [], 0
        for part in parts:
            count = len(part) // 2 + 1
            encoded.append(self._joined(between[done : done + count], part[1::2], numbers))
            done += count
        return encoded

    def decode(self, tokens: Ints, values: Floats) -> str:
        """The text of tokens, a value for each [NUM]; special tokens are written by their names.

        Bytes that are no text (a network may write some) become U+FFFD. ValueError for unknown
        ids, or as many values as there are not [NUM] tokens.
        """
        number = self.vocabulary.ids[NUM]
        if len(values) != np.count_nonzero(tokens == number):
            raise ValueError(f"{len(values)} values are given for the numbers of the tokens")
        if len(tokens) and not 0 <= tokens.min() <= tokens.max() < len(self._spellings):
            raise ValueError("there are ids outside the vocabulary")
        left = iter(values.tolist())
        written = b"".join(
            spelling(next(left)).encode() if token == number else self._spellings[token]
            for token in tokens.tolist()
        )
        try:
            return written.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return written.decode("utf-8", "replace")

    def codes(self, encoded: Encoded) -> Codes:
        """A row per token for the network, shape (T, columns); zeros where it is no number."""
        encoding = self.vocabulary.encoding
        if encoding is None:
            return np.zeros((len(encoded.tokens), 0), np.int8)
        codes = np.zeros((len(encoded.tokens), encoding.columns), encoding.dtype)
        codes[encoded.tokens == self.vocabulary.ids[NUM]] = encoding.code(encoded.values)
        return codes

    def _joined(
        self, between: Sequence[Sequence[int]], numbers: Sequence[str], written: _Written
    ) -> Encoded:
        """Text ids and numbers, by turns."""
        tokens = [piece + self.first for piece in between[0]]
        values = []
        for number, text in zip(numbers, between[1:], strict=True):
            spelled, value = written[number]
            tokens += spelled
            if value is not None:
                values.append(value)
            tokens += [piece + self.first for piece in text]
        return Encoded(np.array(tokens, np.int64), np.array(values, np.float64))

    def _numbers(self, pieces: Iterable[str]) -> _Written:
        """Tokens of each number (or surrogate), and its value where it is one [NUM]."""
        ids, encoding = self.vocabulary.ids, self.vocabulary.encoding
        unsigned = encoding is not None and not encoding.signed
        signs = {text: "-" if unsigned and text[0] == "-" else "" for text in pieces}
        held = self._held({text: text[len(sign) :] for text, sign in signs.items()}, encoding)
        written: _Written = {}
        for text, sign in signs.items():
            if text in held:
                written[text] = [ids[MINUS], ids[NUM]] if sign else [ids[NUM]], held[text]
            else:
                written[text] = self._spelled(text), None
        return written

    def _held(self, texts: dict[str, str], encoding: NumberEncoding | None) -> dict[str, float]:
        """The values of those numbers that the encoding holds, by their full text."""
        if encoding is None:
            return {}
        found = {full: value_of(text) for full, text in texts.items() if not _is_surrogate(text)}
        held = {full: value for full, value in found.items() if value is not None}
        fits = _survives(np.array(list(held.values())), encoding)
        return {full: v for (full, v), fit in zip(held.items(), fits, strict=True) if fit}

    def _spelled(self, text: str) -> list[int]:
        if _is_surrogate(text):
            octets = text.encode("utf-8", "surrogatepass")
            return [self._bpe.byte_ids[octet] + self.first for octet in octets]
        return [self.vocabulary.ids[piece] for piece in self._pieces(text)]


def number_tokens(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Which ids are numbers or pieces of numbers in a text, shape (tokens,)."""
    ids = vocabulary.ids
    flags = np.zeros(len(vocabulary), bool)
    flags[[ids[NUM], ids[MINUS], ids[POINT]]] = True
    flags[[number for token, number in ids.items() if token.isdecimal()]] = True
    return flags


def _is_surrogate(text: str) -> bool:
    return "\ud800" <= text[0] <= "\udfff"


def _survives(values: Floats, encoding: NumberEncoding) -> NDArray[np.bool_]:
    """Which values an encoding returns: the same, or for one that is never exact nearly so."""
    back = encoding.value(encoding.code(values))
    if (encoding.value(encoding.code(_PROBES)) == _PROBES).all():
        return np.equal(back, values)
    with np.errstate(invalid="ignore"):
        near: NDArray[np.bool_] = np.abs(back - values) <= _CLOSE * np.abs(values)
    return near
