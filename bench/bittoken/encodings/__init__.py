"""The single-token number encodings: those of this package and of installed plugins.

An encoding is registered in one place: inside this package in `_BUILT_IN`, in any other package as
an entry point in the group `numbench.encodings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from bittoken.encodings.base import NumberEncoding
from bittoken.encodings.base2_fixed import Base2Fixed
from bittoken.encodings.base10 import Base10
from bittoken.encodings.base10_fixed import Base10Fixed
from bittoken.encodings.bittoken import BitToken
from bittoken.encodings.fone import FoNE, FoNELog
from bittoken.encodings.xval import XVal
from numbench.errors import BadInput
from numbench.plugins import load_plugins

_BUILT_IN: tuple[NumberEncoding, ...] = (
    BitToken(),
    BitToken(reciprocal=False),
    FoNE(),
    FoNELog(),
    XVal(),
    Base10(),
    Base2Fixed(),
    Base10Fixed(),
)

ENTRY_POINTS = "numbench.encodings"

DIGITS_PER_TOKEN = {"digit": 1, "subword": 3}
"""Encodings that write a number as text: the maximum number of digits per token."""


class _EncodingRegistry(Mapping[str, NumberEncoding]):
    """Encodings by name. Plugins are loaded on first use, so that they can import this package."""

    @cached_property
    def _encodings(self) -> dict[str, NumberEncoding]:
        encodings = {encoding.name: encoding for encoding in _BUILT_IN}
        for entry, encoding in load_plugins(ENTRY_POINTS, NumberEncoding):  # type: ignore[type-abstract]
            if encoding.name in encodings or encoding.name in DIGITS_PER_TOKEN:
                raise BadInput(
                    f"plugin encoding {encoding.name!r} (entry point {entry!r} in {ENTRY_POINTS}): "
                    "an encoding of this name exists already; rename it"
                )
            encodings[encoding.name] = encoding
        return encodings

    def __getitem__(self, name: str) -> NumberEncoding:
        return self._encodings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._encodings)

    def __len__(self) -> int:
        return len(self._encodings)


ENCODINGS: Mapping[str, NumberEncoding] = _EncodingRegistry()
"""The single-token encodings by name: the built-in ones, then those of plugins."""
