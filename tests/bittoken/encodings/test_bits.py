"""BitToken against the bytes of a float64."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench.bittoken.encodings.bits import BitToken, bits, from_bits, torch_bits
from tests.bittoken.encodings.values import SPECIAL, everywhere, patterns, same_bits

FULL, PLAIN = BitToken(), BitToken(reciprocal=False)


def _binary(hexadecimal: str) -> list[int]:
    return [int(bit) for bit in f"{int(hexadecimal, 16):064b}"]


def _packed(value: float) -> list[int]:
    (number,) = struct.unpack(">Q", struct.pack(">d", value))
    return _binary(f"{number:x}")


@pytest.mark.parametrize(
    ("value", "own", "inverse"),
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
def test_numbers_written_out_by_hand(value: float, own: str, inverse: str) -> None:
    values = np.array([value])
    assert int(FULL.code(values)[0, 0]) % 2**64 == int(own, 16)
    signs = [2 * bit - 1 for bit in _binary(own) + _binary(inverse)]
    assert FULL.vector(FULL.code(values))[0].tolist() == signs
    assert PLAIN.vector(PLAIN.code(values))[0].tolist() == signs[:64]


def test_bits_are_those_that_struct_packs() -> None:
    values = np.concatenate([SPECIAL, everywhere()[::40]])
    expected = [_packed(value) for value in values.tolist()]
    assert bits(values).tolist() == expected
    assert torch_bits(torch.from_numpy(FULL.code(values))).tolist() == expected
    with np.errstate(divide="ignore", over="ignore"):
        inverse = [_packed(value) for value in (1 / values).tolist()]
    vectors = FULL.vector(FULL.code(values))
    assert ((vectors + 1) / 2).tolist() == [a + b for a, b in zip(expected, inverse, strict=True)]


def test_every_bit_pattern_comes_back_nan_payloads_too() -> None:
    values = np.concatenate([patterns(), everywhere()])
    assert same_bits(from_bits(bits(values)), values)
    for encoding in (FULL, PLAIN):
        codes = encoding.code(values)
        assert same_bits(encoding.value(encoding.nearest(encoding.vector(codes))), values)


@given(st.lists(st.floats(width=64), max_size=20))
def test_any_floats_come_back(listed: list[float]) -> None:
    values = np.array(listed, np.float64)
    assert same_bits(from_bits(bits(values)), values)
    assert same_bits(FULL.value(FULL.nearest(FULL.vector(FULL.code(values)))), values)


def test_a_nan_stands_for_its_own_reciprocal() -> None:
    payload = np.array([0x7FF8000000000ABC, 0xFFF4000000000001], np.uint64).view(np.float64)
    vectors = FULL.vector(FULL.code(payload))
    assert np.array_equal(vectors[:, :64], vectors[:, 64:])


def test_memory_that_is_not_contiguous_or_big_endian_is_read_right() -> None:
    values = everywhere()
    assert np.array_equal(bits(values[::3]), bits(values)[::3])
    assert np.array_equal(bits(values.astype(">f8")), bits(values))


def test_a_bit_is_set_where_its_logit_is_above_zero() -> None:
    outputs = np.full((1, 64), -1e-30, np.float32)
    outputs[0, 0] = outputs[0, 63] = 1e-30
    outputs[0, 1] = 0
    assert FULL.decide(outputs)[0, 0] == -(2**63) + 1
    assert FULL.torch_decide(torch.from_numpy(outputs)).item() == -(2**63) + 1


def test_loss_is_the_mean_binary_cross_entropy() -> None:
    one = torch.from_numpy(FULL.code(np.array([1.0])))
    none = FULL.loss(torch.zeros(1, 64), one)
    assert none.item() == pytest.approx(math.log(2))
    # 1.0 has ten bits set. At logit 2, a set bit costs log(1 + e^-2) and any other log(1 + e^2).
    expected = (10 * math.log(1 + math.exp(-2)) + 54 * math.log(1 + math.exp(2))) / 64
    assert FULL.loss(torch.full((1, 64), 2.0), one).item() == pytest.approx(expected)
