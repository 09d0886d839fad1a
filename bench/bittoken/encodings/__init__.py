"""Every way to write a number into a network, by name."""

from __future__ import annotations

from bench.bittoken.encodings.base import NumberEncoding
from bench.bittoken.encodings.bits import BitToken

ENCODINGS: dict[str, NumberEncoding] = {
    encoding.name: encoding for encoding in (BitToken(), BitToken(reciprocal=False))
}
"""The single-token encodings."""
