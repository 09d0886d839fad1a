"""BitToken, compared with the bytes of a float64."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bittoken.encodings.bittoken import BitToken
from tests.bittoken.encodings.values import SPECIAL, finite_and_infinite, patterns, same_bits

FULL, PLAIN = BitToken(), BitToken(reciprocal=False)


def _binary(hexadecimal: str) -> list[int]:
    return [int(bit) for bit in f"{int(hexadecimal, 16):064b}"]


def _packed(value: float) -> list[int]:
    (number,) = struct.unpack(">Q", struct.pack(">d", value))
    return _binary(f"{number:x}")


@pytest.mark.parametrize(
    ("value", "bits", "inverse"),
    [
        (1.0, "3ff0000000000000", "3ff0000000000000"),
        (-2.5, "c004000000000000", "bfd999999999999a"),
        (0.1, "3fb999999999999a", "4024000000000000"),
        (0.0, "0000000000000000", "7ff0000000000000"),
        (-0.0, "8000000000000000", "fff0000000000000"),
        (math.inf, "7ff0000000000000", "0000000000000000"),
        (5e-324, "0000000000000001", "7ff0000000000000"),
    ],
)
def test_codes_and_vectors_match_examples(value: float, bits: str, inverse: str) -> None:
    values = np.array([value])
    assert int(FULL.encode(values)[0, 0]) % 2**64 == int(bits, 16)
    signs = [2 * bit - 1 for bit in _binary(bits) + _binary(inverse)]
    assert FULL.vector(FULL.encode(values))[0].tolist() == signs
    assert PLAIN.vector(PLAIN.encode(values))[0].tolist() == signs[:64]


def test_bits_equal_those_of_struct() -> None:
    values = np.concatenate([SPECIAL, finite_and_infinite()[::40]])
    expected = [_packed(value) for value in values.tolist()]
    with np.errstate(divide="ignore", over="ignore"):
        inverse = [_packed(value) for value in (1 / values).tolist()]
    vectors = FULL.vector(FULL.encode(values))
    assert ((vectors + 1) / 2).tolist() == [a + b for a, b in zip(expected, inverse, strict=True)]


def test_every_bit_pattern_is_decoded_exactly() -> None:
    values = np.concatenate([patterns(), finite_and_infinite()])
    for encoding in (FULL, PLAIN):
        codes = encoding.encode(values)
        assert same_bits(encoding.decode(encoding.nearest_codes(encoding.vector(codes))), values)


@given(st.lists(st.floats(width=64), max_size=20))
def test_arbitrary_floats_are_decoded_exactly(numbers: list[float]) -> None:
    values = np.array(numbers, np.float64)
    assert same_bits(FULL.decode(FULL.nearest_codes(FULL.vector(FULL.encode(values)))), values)


def test_reciprocal_of_nan_is_the_same_nan() -> None:
    payload = np.array([0x7FF8000000000ABC, 0xFFF4000000000001], np.uint64).view(np.float64)
    vectors = FULL.vector(FULL.encode(payload))
    assert np.array_equal(vectors[:, :64], vectors[:, 64:])


def test_strided_and_big_endian_arrays_are_supported() -> None:
    values = finite_and_infinite()
    assert np.array_equal(FULL.encode(values[::3]), FULL.encode(values)[::3])
    assert np.array_equal(FULL.encode(values.astype(">f8")), FULL.encode(values))


def test_bits_are_set_if_their_logit_is_positive() -> None:
    outputs = np.full((1, 64), -1e-30, np.float32)
    outputs[0, 0] = outputs[0, 63] = 1e-30
    outputs[0, 1] = 0
    assert FULL.predict_codes(outputs)[0, 0] == -(2**63) + 1
    assert FULL.torch_predict_codes(torch.from_numpy(outputs)).item() == -(2**63) + 1


def test_loss_is_the_mean_binary_cross_entropy() -> None:
    one = torch.from_numpy(FULL.encode(np.array([1.0])))
    uniform = FULL.loss(torch.zeros(1, 64), one)
    assert uniform.item() == pytest.approx(math.log(2))
    # 1.0 has ten bits set. At logit 2, a set bit costs log(1 + e^-2) and any other log(1 + e^2).
    expected = (10 * math.log(1 + math.exp(-2)) + 54 * math.log(1 + math.exp(2))) / 64
    assert FULL.loss(torch.full((1, 64), 2.0), one).item() == pytest.approx(expected)
