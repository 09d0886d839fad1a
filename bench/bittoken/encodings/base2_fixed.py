"""Base 2, fixed point: a sign and bits at fixed positions, as ±1."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from bittoken.encodings.base import Codes, FloatArray, NumberEncoding, reject_nan
from bittoken.encodings.bit_vectors import bit_loss, torch_pack_bits, torch_to_signs

INTEGER_BITS, FRACTION_BITS = 50, 101
"""Enough for every number of the tasks, as the nearest float64: from 1e-14 to below 1e15."""

_UNIT = 2.0**-FRACTION_BITS
_OVERFLOW = 2 ** (INTEGER_BITS + FRACTION_BITS) - 1
_BYTES = (1 + INTEGER_BITS + FRACTION_BITS) // 8
_SIGN = 0x80


class Base2Fixed(NumberEncoding):
    """Sign, 50 bits before the binary point and 101 after it, most significant first, as ±1.

    The code is these 152 bits, packed into 19 bytes. Bits below 2^-101 are rounded half to even, so
    that every float64 from 2^-49 = 1.8e-15 on is exact. From 2^50 = 1.1e15 on, including inf, all
    bits but the sign are 1, which is decoded to ±inf: no float64 in range has that code. ±0 keeps
    its sign.
    """

    name = "base2-fixed"
    display = "Base 2, fixed point"
    columns = _BYTES
    dtype = np.dtype(np.uint8)
    width = outputs = 8 * _BYTES
    base = 2

    def encode(self, values: FloatArray) -> Codes:
        """Return the codes. Raises BadInput if a value is NaN."""
        reject_nan(values, self.display)
        in_range = np.abs(values) < 2.0**INTEGER_BITS
        # An integer below 2^151. Every operation on it is exact, since it has at most 53 bits.
        units = np.rint(np.where(in_range, np.abs(values), 0) / _UNIT)
        words = []
        for place in (2.0**128, 2.0**64, 1.0):
            word = np.floor(units / place)
            units -= word * place
            words.append(word.astype(np.uint64))
        packed = np.stack(words, axis=1).astype(">u8").view(np.uint8)[:, -_BYTES:]
        codes = np.where(in_range[:, None], packed, 0xFF)
        codes[:, 0] &= ~np.uint8(_SIGN)
        codes[np.signbit(values), 0] |= _SIGN
        return codes

    def decode(self, codes: Codes) -> FloatArray:
        """Return the float64 nearest to each code."""
        rows = np.ascontiguousarray(codes)
        magnitudes = rows.copy()
        magnitudes[:, 0] &= ~np.uint8(_SIGN)
        integers = (int.from_bytes(row) for row in magnitudes)
        values = np.array([np.inf if n == _OVERFLOW else n * _UNIT for n in integers], np.float64)
        return np.where(rows[:, 0] >= _SIGN, -values, values)

    def torch_vector(self, codes: Tensor) -> Tensor:
        return torch_to_signs(codes)

    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
        return torch_pack_bits(outputs > 0)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the binary cross-entropy, averaged over the 152 bits."""
        return bit_loss(outputs, codes)
