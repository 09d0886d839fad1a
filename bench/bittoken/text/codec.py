"""Lossless conversion between text and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittoken.encodings.base import Codes, FloatArray, IntArray, NumberEncoding
from bittoken.text.bpe import ByteBpe
from bittoken.text.number_parsing import NUMBER_PATTERN, canonical_value, plain_decimal
from bittoken.vocabulary import MINUS, NUM, POINT, Vocabulary
from numbench.errors import BadInput

_RELATIVE_TOLERANCE = 1e-3
"""Relative error up to which an encoding that is never exact counts as representing a number."""

_PROBES = np.array([0.1, 7.0, 0.123456789012345, 2.71828182845905, 31415.9265358979])
"""Values that identify an exact encoding: it returns all of them unchanged."""

_SURROGATE = "[\ud800-\udfff]"
_NUMBER = re.compile(f"({NUMBER_PATTERN}|{_SURROGATE})")
_NUMBERS = re.compile(f"((?:{NUMBER_PATTERN})+|{_SURROGATE})")


class EncodedText(NamedTuple):
    """A tokenized text.

    tokens: ids, shape (T,). values: the numbers of the [NUM] tokens, in order.
    """

    tokens: IntArray
    values: FloatArray


_TokensByNumber = dict[str, tuple[list[int], float | None]]


class TextCodec:
    """Converts text to tokens of a vocabulary and back; `decode` reverses `encode` exactly.

    Numbers in text become:

    - one [NUM] token if the number is written in its canonical decimal form and the encoding
      returns the same value; an unsigned encoding has a `-` token before it if it is negative;
    - digit, `.` and `-` tokens otherwise: `3.10`, `-0`, more than 15 digits, out of range.

    An encoding that is not exact for any number (xVal) uses [NUM] for numbers that it returns
    nearly: `values` hold the exact numbers of the text, and the encoding rounds.
    """

    def __init__(self, vocabulary: Vocabulary, bpe: ByteBpe) -> None:
        """Raises BadInput if `vocabulary` was not created with the tokens of `bpe`."""
        self.text_offset = len(vocabulary.base_tokens)
        if vocabulary.tokens[self.text_offset :] != bpe.tokens:
            raise BadInput("the vocabulary was not created with this text vocabulary")
        self.vocabulary = vocabulary
        self._bpe = bpe
        self._split = (_NUMBERS if vocabulary.encoding is None else _NUMBER).split
        self._pieces = re.compile(f"[0-9]{{1,{vocabulary.digits_per_token or 1}}}|[-.]").findall
        self._spellings = [token.encode() for token in vocabulary.base_tokens] + bpe.token_bytes

    def encode(self, text: str) -> EncodedText:
        """Return the tokens of a text, never a special token."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[EncodedText]:
        """Return `encode` of each text; faster than one by one."""
        parts = [self._split(text) for text in texts]
        between = self._bpe.encode([piece for part in parts for piece in part[::2]])
        numbers = self._numbers({piece for part in parts for piece in part[1::2]})
        encoded, start = [], 0
        for part in parts:
            count = len(part) // 2 + 1
            encoded.append(self._interleave(between[start : start + count], part[1::2], numbers))
            start += count
        return encoded

    def decode(self, tokens: IntArray, values: FloatArray) -> str:
        """Return the text of tokens, with a value for each [NUM]; special tokens as their names.

        Invalid UTF-8, which a network may generate, becomes U+FFFD. Raises ValueError for unknown
        ids, or if the numbers of values and [NUM] tokens differ.
        """
        number = self.vocabulary.ids[NUM]
        if len(values) != (count := np.count_nonzero(tokens == number)):
            raise ValueError(f"there are {len(values)} values for {count} [NUM] tokens")
        if len(tokens) and not 0 <= tokens.min() <= tokens.max() < len(self._spellings):
            raise ValueError("there are ids outside the vocabulary")
        remaining = iter(values.tolist())
        spelled = b"".join(
            plain_decimal(next(remaining)).encode() if token == number else self._spellings[token]
            for token in tokens.tolist()
        )
        try:
            return spelled.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return spelled.decode("utf-8", "replace")

    def codes(self, encoded: EncodedText) -> Codes:
        """Return the number codes of the tokens, shape (T, columns); zeros for other tokens."""
        encoding = self.vocabulary.encoding
        if encoding is None:
            return np.zeros((len(encoded.tokens), 0), np.int8)
        codes = np.zeros((len(encoded.tokens), encoding.columns), encoding.dtype)
        codes[encoded.tokens == self.vocabulary.ids[NUM]] = encoding.encode(encoded.values)
        return codes

    def _interleave(
        self,
        between: Sequence[Sequence[int]],
        numbers: Sequence[str],
        tokens_by_number: _TokensByNumber,
    ) -> EncodedText:
        """Interleave text ids and numbers; `between` has one more part than `numbers`."""
        tokens = [piece + self.text_offset for piece in between[0]]
        values = []
        for number, text in zip(numbers, between[1:], strict=True):
            number_tokens, value = tokens_by_number[number]
            tokens += number_tokens
            if value is not None:
                values.append(value)
            tokens += [piece + self.text_offset for piece in text]
        return EncodedText(np.array(tokens, np.int64), np.array(values, np.float64))

    def _numbers(self, pieces: Iterable[str]) -> _TokensByNumber:
        """Return the tokens of each number (or surrogate), and its value if it is one [NUM]."""
        ids, encoding = self.vocabulary.ids, self.vocabulary.encoding
        is_unsigned = encoding is not None and not encoding.signed
        signs = {text: "-" if is_unsigned and text[0] == "-" else "" for text in pieces}
        values = self._values_in_range(
            {text: text[len(sign) :] for text, sign in signs.items()}, encoding
        )
        tokens_by_number: _TokensByNumber = {}
        for text, sign in signs.items():
            if text in values:
                tokens = [ids[MINUS], ids[NUM]] if sign else [ids[NUM]]
                tokens_by_number[text] = tokens, values[text]
            else:
                tokens_by_number[text] = self._spell(text), None
        return tokens_by_number

    def _values_in_range(
        self, texts: dict[str, str], encoding: NumberEncoding | None
    ) -> dict[str, float]:
        """Return the values of the numbers that the encoding can represent.

        texts: the unsigned text of each number, by its full text.
        """
        if encoding is None:
            return {}
        parsed = {
            full: canonical_value(text) for full, text in texts.items() if not _is_surrogate(text)
        }
        values = {full: value for full, value in parsed.items() if value is not None}
        is_exact = _round_trips(np.array(list(values.values())), encoding)
        return {full: v for (full, v), exact in zip(values.items(), is_exact, strict=True) if exact}

    def _spell(self, text: str) -> list[int]:
        if _is_surrogate(text):
            octets = text.encode("utf-8", "surrogatepass")
            return [self._bpe.byte_ids[octet] + self.text_offset for octet in octets]
        return [self.vocabulary.ids[piece] for piece in self._pieces(text)]


def number_token_mask(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return which ids are numbers or parts of numbers in a text, shape (vocabulary,)."""
    ids = vocabulary.ids
    flags = np.zeros(len(vocabulary), bool)
    flags[[ids[NUM], ids[MINUS], ids[POINT]]] = True
    flags[[number for token, number in ids.items() if token.isdecimal()]] = True
    return flags


def _is_surrogate(text: str) -> bool:
    return "\ud800" <= text[0] <= "\udfff"


def _round_trips(values: FloatArray, encoding: NumberEncoding) -> NDArray[np.bool_]:
    """Return which values the encoding returns: exactly, or nearly if it is never exact."""
    decoded = encoding.decode(encoding.encode(values))
    if (encoding.decode(encoding.encode(_PROBES)) == _PROBES).all():
        return np.equal(decoded, values)
    with np.errstate(invalid="ignore"):
        near: NDArray[np.bool_] = np.abs(decoded - values) <= _RELATIVE_TOLERANCE * np.abs(values)
    return near
