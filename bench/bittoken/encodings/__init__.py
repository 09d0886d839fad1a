"""The single-token number encodings: those of this package and of installed plugins.

Any other package registers an encoding as an entry point in the group `bittoken.encodings`.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from functools import cached_property

from bittoken.encodings.base import NumberEncoding
from bittoken.encodings.base10 import Base10, StudyBase10
from bittoken.encodings.bittoken import BitToken
from bittoken.encodings.fone import FoNE, StudyFoNE
from bittoken.encodings.xval import XVal
from numbench.core.installation import load_plugins
from numbench.errors import BadInput

ENTRY_POINTS = "bittoken.encodings"

DIGITS_PER_TOKEN = {"digit": 1, "subword": 3}
"""Encodings that write a number as text: the maximum number of digits per token."""


class _EncodingRegistry(UserDict[str, NumberEncoding]):
    """Encodings by name. Plugins are loaded on first use, so that they can import this package."""

    def __init__(self) -> None:
        """Create the registry without loading the plugins."""

    @cached_property
    def data(self) -> dict[str, NumberEncoding]:  # type: ignore[override]
        """Load the encodings. Raises BadInput for a broken plugin."""
        built_in = (BitToken(), BitToken(reciprocal=False), FoNE(), XVal(), Base10())
        encodings: dict[str, NumberEncoding] = {encoding.name: encoding for encoding in built_in}
        for entry, encoding in load_plugins(ENTRY_POINTS, NumberEncoding):  # type: ignore[type-abstract]
            if encoding.name in encodings or encoding.name in DIGITS_PER_TOKEN:
                raise BadInput(
                    f"plugin encoding {encoding.name!r} (entry point {entry!r} in {ENTRY_POINTS}): "
                    "an encoding of this name exists already; rename it"
                )
            encodings[encoding.name] = encoding
        return encodings


ENCODINGS: Mapping[str, NumberEncoding] = _EncodingRegistry()
"""The single-token encodings by name: the built-in ones, then those of plugins."""


STUDY_ENCODINGS: Mapping[str, NumberEncoding] = {
    encoding.name: encoding for encoding in (StudyFoNE(), StudyBase10())
}
"""The encodings of the paper's own code that differ; they cannot be trained."""


def find_encoding(name: str) -> NumberEncoding | None:
    """Return the encoding of this name; None for "digit" and "subword", which write text.

    Also finds the encodings of the paper's own code, which only converted checkpoints have. Raises
    BadInput if there is none.
    """
    if name in DIGITS_PER_TOKEN:
        return None
    if encoding := ENCODINGS.get(name) or STUDY_ENCODINGS.get(name):
        return encoding
    known = ", ".join((*ENCODINGS, *DIGITS_PER_TOKEN))
    raise BadInput(f"unknown encoding {name!r}; use one of {known}")
