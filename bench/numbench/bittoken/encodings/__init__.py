"""The single-token number encodings, by name."""

from __future__ import annotations

from numbench.bittoken.encodings.base import NumberEncoding
from numbench.bittoken.encodings.base10 import Base10
from numbench.bittoken.encodings.bittoken import BitToken
from numbench.bittoken.encodings.fone import FoNE, FoNELog
from numbench.bittoken.encodings.xval import XVal

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
"""The single-token encodings by name."""
