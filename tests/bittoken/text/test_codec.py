"""Text ↔ tokens: nothing is lost, and numbers are numbers where they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.bittoken.encodings import ENCODINGS
from bench.bittoken.text.bpe import ALPHABET, ByteBpe
from bench.bittoken.text.codec import TextCodec, number_tokens
from bench.bittoken.text.numbers import spelling, value_of
from bench.bittoken.vocabulary import ENCODING_NAMES, EOS, NUM, Vocabulary
from bench.errors import BadInput
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
    """The tokens of a text by their names, numbers by their values."""
    tokens, values = codec.encode(text)
    left = iter(values.tolist())
    number = codec.vocabulary.ids[NUM]
    return [next(left) if t == number else codec.vocabulary.tokens[t] for t in tokens.tolist()]


@pytest.mark.parametrize("name", CODECS)
def test_every_text_comes_back(name: str) -> None:
    codec = CODECS[name]

    @settings(max_examples=150, deadline=None)
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
def test_texts_together_give_what_each_gives_alone(texts: list[str], name: str) -> None:
    together = CODECS[name].encode_all(texts)
    for text, encoded in zip(texts, together, strict=True):
        alone = CODECS[name].encode(text)
        assert encoded.tokens.tolist() == alone.tokens.tolist()
        assert encoded.values.tolist() == alone.values.tolist()


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(sorted(ENCODINGS)))
def test_what_an_exact_encoding_returns_is_still_the_text(text: str, name: str) -> None:
    encoding, codec = ENCODINGS[name], CODECS[name]
    tokens, values = codec.encode(text)
    back = encoding.value(encoding.code(values))
    if name in ("xval", "fone-log"):
        assert np.allclose(back, values, rtol=1e-3, atol=0)
    else:
        assert codec.decode(tokens, back) == text


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(sorted(CODECS)))
def test_no_text_gives_a_special_token(text: str, name: str) -> None:
    codec = CODECS[name]
    own = codec.encode(text + "<|eos|><|num|><|bos|>").tokens
    allowed = number_tokens(codec.vocabulary)
    assert all(token >= codec.first or allowed[token] for token in own.tolist())


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
def test_numbers_that_are_spelled(text: str, digit: list[str], subword: list[str]) -> None:
    assert pieces(CODECS["digit"], text) == digit
    assert pieces(CODECS["subword"], text) == subword


def test_digits_points_and_signs_of_numbers_are_own_tokens() -> None:
    codec = CODECS["digit"]
    tokens = codec.encode("-1.5").tokens
    assert tokens.tolist() == [codec.vocabulary.ids[piece] for piece in "-1.5"]
    # A sign or a point away from numbers is text.
    assert (codec.encode("a-b.").tokens >= codec.first).all()


def test_an_encoding_that_is_never_exact_gets_the_value_of_the_text() -> None:
    codec = CODECS["rough"]
    tokens, values = codec.encode("about 3.25 and 5000000000")
    assert values.tolist() == [3.25]
    returned = Rough().value(codec.codes(codec.encode("3.25")))
    assert returned[0] != 3.25 and returned[0] == pytest.approx(3.25, rel=1e-4)
    assert codec.decode(tokens, values) == "about 3.25 and 5000000000"


def test_codes_stand_at_the_numbers_only() -> None:
    codec = CODECS["bittoken"]
    encoded = codec.encode("a 2 b -2")
    codes = codec.codes(encoded)
    at = encoded.tokens == codec.vocabulary.ids[NUM]
    assert codes.shape == (len(encoded.tokens), 1) and codes.dtype == np.int64
    assert codes[at, 0].view(np.float64).tolist() == [2.0, -2.0]
    assert at.sum() == 2 and not codes[~at].any()
    assert CODECS["digit"].codes(CODECS["digit"].encode("a 2")).shape == (3, 0)


def test_a_value_is_found_only_in_its_one_spelling() -> None:
    for text in ("0", "-1.25", "0.000001", "123456789012345", "1" + "0" * 300):
        value = value_of(text)
        assert value == float(text) and spelling(value) == text
    for text in ("-0", "1.0", ".5", "1234567890123456", "1" + "0" * 309, "0." + "0" * 330 + "1"):
        assert value_of(text) is None


@given(st.integers(0, 10**15 - 1), st.integers(0, 40))
def test_no_decimal_of_15_digits_is_refused_or_changed(significand: int, places: int) -> None:
    text = f"{significand:0{places + 1}}"
    text = f"{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".") if places else text
    assert value_of(text) == float(text)


def test_what_a_network_writes_is_shown_whatever_it_is() -> None:
    codec = CODECS["bittoken"]
    ids = codec.vocabulary.ids
    broken = codec.first + ALPHABET.index("Ā")
    half = codec.first + SMALL.byte_ids[0xC3]
    tokens = np.array([ids[NUM], half, ids[NUM], broken, ids[NUM], ids[EOS], ids[NUM]])
    values = np.array([math.inf, -0.0, math.nan, 1e21])
    assert codec.decode(tokens, values) == "inf\ufffd0\x00nan<|eos|>1" + "0" * 21


def test_tokens_and_values_that_do_not_fit_are_refused() -> None:
    codec = CODECS["bittoken"]
    number = np.array([codec.vocabulary.ids[NUM]])
    for values in (np.array([]), np.array([1.0, 2.0])):
        with pytest.raises(ValueError, match="values"):
            codec.decode(number, values)
    for token in (-1, len(codec.vocabulary)):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            codec.decode(np.array([token]), np.array([]))


def test_a_vocabulary_with_other_entries_is_refused() -> None:
    other = ByteBpe([*ALPHABET, "an"], [("a", "n")])
    with pytest.raises(BadInput, match="do not belong together"):
        TextCodec(Vocabulary("bittoken", other.tokens), SMALL)


def test_number_tokens_are_num_signs_points_and_digits() -> None:
    for name, digits in (("bittoken", 10), ("digit", 10), ("subword", 1110)):
        vocabulary = CODECS[name].vocabulary
        flags = number_tokens(vocabulary)
        assert flags.sum() == digits + 3 and flags.shape == (len(vocabulary),)
        own = {vocabulary.tokens[i] for i in np.flatnonzero(flags)}
        assert {NUM, "-", ".", "0", "9"} <= own
        assert not flags[len(vocabulary.own) :].any()
