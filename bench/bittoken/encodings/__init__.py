"""Every way to write a number into a network, by name."""

from __future__ import annotations

from bench.bittoken.encodings.base import NumberEncoding
from bench.bittoken.encodings.base10 import Base10
from bench.bittoken.encodings.bits import BitToken
from bench.bittoken.encodings.fone import FoNE
from bench.bittoken.encodings.fone_log import FoNELog
from bench.bittoken.encodings.xval import XVal

ENCODINGS: dict[str, NumberEncoding] = {
    encoding.name: encoding
    for encoding in (
        BitToken(),
        BitToken(reciprocal=False),
        FoNE(),
        FoNELog(),
        XVal(),
        Base10(),
    )
}
"""The single-token encodings."""
