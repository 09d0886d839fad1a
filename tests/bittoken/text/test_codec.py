"""Text ↔ tokens: lossless, with [NUM] tokens for numbers that the encoding can represent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bittoken.encodings import ENCODINGS
from bittoken.text.bpe import ALPHABET, ByteBpe
from bittoken.text.codec import TextCodec, number_token_mask
from bittoken.text.number_parsing import canonical_value, plain_decimal
from bittoken.vocabulary import ENCODING_NAMES, EOS, NUM, Vocabulary
from numbench.errors import BadInput
from tests.bittoken.text.small import SMALL, Rough, Unsigned, codec, codec_with

CODECS = {name: codec(name) for name in ENCODING_NAMES}
CODECS |= {"unsigned": codec_with(Unsigned()), "rough": codec_with(Rough())}

NUMBERS = ["007", "3.10", "1e5", "-.5", "1,000", "12345678901234567890", "--5", "-0", "0.", ".0"]
NUMBERS += ["1.2.3", "00.5", "5-3", "-0.0", "1" * 400, "0." + "0" * 400 + "1", "1" + "0" * 330]
PIECES = st.one_of(
    st.text(),
    st.text("0123456789.-, e+"),
    st.sampled_from(NUMBERS),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: f"{d:f}"),
    st.sampled_from(["<|eos|>", "<|num|>", "<|pad|>", "[", ", ", "²", "٣", "①", "\x00", "\r\n"]),
    st.text(st.characters(categories=["Cs", "Cc", "Nd", "Mn"])),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)


def pieces(codec: TextCodec, text: str) -> list[str | float]:
    """Return the tokens of a text by name, numbers by value."""
    tokens, values = codec.encode(text)
    remaining = iter(values.tolist())
    number = codec.vocabulary.ids[NUM]
    return [next(remaining) if t == number else codec.vocabulary.tokens[t] for t in tokens.tolist()]


@pytest.mark.parametrize("name", CODECS)
def test_every_text_round_trips(name: str) -> None:
    codec = CODECS[name]

    @settings(max_examples=60, deadline=None)
    @given(TEXTS)
    @example("".join(f"{number} " for number in NUMBERS) + "".join(NUMBERS))
    @example("\ud83d\ude00\ud800x\udfff 5\udfff")
    def check(text: str) -> None:
        encoded = codec.encode(text)
        assert codec.decode(*encoded) == text
        assert encoded.tokens.dtype == np.int64 and encoded.values.dtype == np.float64

    check()


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=4), st.sampled_from(sorted(CODECS)))
def test_batch_encoding_equals_single_encoding(texts: list[str], name: str) -> None:
    together = CODECS[name].encode_batch(texts)
    for text, encoded in zip(texts, together, strict=True):
        alone = CODECS[name].encode(text)
        assert encoded.tokens.tolist() == alone.tokens.tolist()
        assert encoded.values.tolist() == alone.values.tolist()


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from(sorted(ENCODINGS)))
def test_text_round_trips_through_the_number_codes(text: str, name: str) -> None:
    encoding, codec = ENCODINGS[name], CODECS[name]
    tokens, values = codec.encode(text)
    back = encoding.decode(encoding.encode(values))
    if name in ("xval", "fone-log"):
        assert np.allclose(back, values, rtol=1e-3, atol=0)
    else:
        assert codec.decode(tokens, back) == text


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(sorted(CODECS)))
def test_text_never_encodes_to_special_tokens(text: str, name: str) -> None:
    codec = CODECS[name]
    own = codec.encode(text + "<|eos|><|num|><|bos|>").tokens
    allowed = number_token_mask(codec.vocabulary)
    assert all(token >= codec.text_offset or allowed[token] for token in own.tolist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x 3.5", ["x", "Ġ", 3.5]),
        ("-12", [-12.0]),
        ("5-3", [5.0, -3.0]),
        ("--5", ["-", -5.0]),
        ("007", [0.0, 0.0, 7.0]),
        ("1,000", [1.0, ",", 0.0, 0.0, 0.0]),
        ("1e5", [1.0, "e", 5.0]),
        ("3.10", ["3", ".", "1", "0"]),
        ("-.5", ["-", ".", "5"]),
        ("-0", ["-", "0"]),
        ("0.", [0.0, "."]),
        ("1.2.3", [1.2, ".", "3"]),
        ("0.1234567890123456", [*"0.1234567890123456"]),
        ("0.123456789012345", [0.123456789012345]),
        ("1" + "0" * 22, [1e22]),
        ("9" * 16, [*"9" * 16]),
        ("in 5", ["in", "Ġ", 5.0]),
    ],
)
def test_numbers_of_a_signed_encoding(text: str, expected: list[str | float]) -> None:
    assert pieces(CODECS["bittoken"], text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x -3.5", ["x", "Ġ", "-", 3.5]),
        ("5-3", [5.0, "-", 3.0]),
        ("-0", ["-", 0.0]),
        ("-.5", ["-", ".", "5"]),
        ("1000000", [1e6]),
        ("-1000001", ["-", *"1000001"]),
    ],
)
def test_numbers_of_an_unsigned_encoding_with_a_range(
    text: str, expected: list[str | float]
) -> None:
    assert pieces(CODECS["unsigned"], text) == expected


@pytest.mark.parametrize(
    ("text", "digit", "subword"),
    [
        ("12345.6789", [*"12345.6789"], ["123", "45", ".", "678", "9"]),
        ("-0075", [*"-0075"], ["-", "007", "5"]),
        ("1,000", ["1", ",", *"000"], ["1", ",", "000"]),
        ("12-34", [*"12-34"], ["12", "-", "34"]),
        ("the 5", ["the", "Ġ", "5"], ["the", "Ġ", "5"]),
    ],
)
def test_numbers_of_spelling_encodings(text: str, digit: list[str], subword: list[str]) -> None:
    assert pieces(CODECS["digit"], text) == digit
    assert pieces(CODECS["subword"], text) == subword


def test_digits_points_and_signs_of_numbers_are_not_text_tokens() -> None:
    codec = CODECS["digit"]
    tokens = codec.encode("-1.5").tokens
    assert tokens.tolist() == [codec.vocabulary.ids[piece] for piece in "-1.5"]
    # A sign or point that is not part of a number is text.
    assert (codec.encode("a-b.").tokens >= codec.text_offset).all()


def test_inexact_encoding_keeps_the_exact_value() -> None:
    codec = CODECS["rough"]
    tokens, values = codec.encode("about 3.25 and 5000000000")
    assert values.tolist() == [3.25]
    returned = Rough().decode(codec.codes(codec.encode("3.25")))
    assert returned[0] != 3.25 and returned[0] == pytest.approx(3.25, rel=1e-4)
    assert codec.decode(tokens, values) == "about 3.25 and 5000000000"


def test_codes_are_zero_except_at_numbers() -> None:
    codec = CODECS["bittoken"]
    encoded = codec.encode("a 2 b -2")
    codes = codec.codes(encoded)
    at = encoded.tokens == codec.vocabulary.ids[NUM]
    assert codes.shape == (len(encoded.tokens), 1) and codes.dtype == np.int64
    assert codes[at, 0].view(np.float64).tolist() == [2.0, -2.0]
    assert at.sum() == 2 and not codes[~at].any()
    assert CODECS["digit"].codes(CODECS["digit"].encode("a 2")).shape == (3, 0)


def test_only_the_canonical_decimal_form_has_a_value() -> None:
    for text in ("0", "-1.25", "0.000001", "123456789012345", "1" + "0" * 300):
        value = canonical_value(text)
        assert value == float(text) and plain_decimal(value) == text
    for text in ("-0", "1.0", ".5", "1234567890123456", "1" + "0" * 309, "0." + "0" * 330 + "1"):
        assert canonical_value(text) is None


@given(st.integers(0, 10**15 - 1), st.integers(0, 40))
def test_every_decimal_of_15_digits_has_its_value(significand: int, places: int) -> None:
    text = f"{significand:0{places + 1}}"
    text = f"{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".") if places else text
    assert canonical_value(text) == float(text)


def test_decode_accepts_any_tokens_of_a_network() -> None:
    codec = CODECS["bittoken"]
    ids = codec.vocabulary.ids
    broken = codec.text_offset + ALPHABET.index("Ā")
    half = codec.text_offset + SMALL.byte_ids[0xC3]
    tokens = np.array([ids[NUM], half, ids[NUM], broken, ids[NUM], ids[EOS], ids[NUM]])
    values = np.array([math.inf, -0.0, math.nan, 1e21])
    assert codec.decode(tokens, values) == "inf\ufffd0\x00nan<|eos|>1" + "0" * 21


def test_mismatched_tokens_and_values_are_rejected() -> None:
    codec = CODECS["bittoken"]
    number = np.array([codec.vocabulary.ids[NUM]])
    for values in (np.array([]), np.array([1.0, 2.0])):
        with pytest.raises(ValueError, match="values"):
            codec.decode(number, values)
    for token in (-1, len(codec.vocabulary)):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            codec.decode(np.array([token]), np.array([]))


def test_vocabulary_with_other_text_tokens_is_rejected() -> None:
    other = ByteBpe([*ALPHABET, "an"], [("a", "n")])
    with pytest.raises(BadInput, match="not created with this text vocabulary"):
        TextCodec(Vocabulary("bittoken", other.tokens), SMALL)


def test_number_token_mask_covers_num_sign_point_and_digits() -> None:
    for name, digits in (("bittoken", 10), ("digit", 10), ("subword", 1110)):
        vocabulary = CODECS[name].vocabulary
        flags = number_token_mask(vocabulary)
        assert flags.sum() == digits + 3 and flags.shape == (len(vocabulary),)
        own = {vocabulary.tokens[i] for i in np.flatnonzero(flags)}
        assert {NUM, "-", ".", "0", "9"} <= own
        assert not flags[len(vocabulary.base_tokens) :].any()
