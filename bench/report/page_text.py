"""Foreign text made fit for a page: nothing invisible, nothing endless. (jinja2 escapes it.)"""

from __future__ import annotations

import base64
import hashlib
import unicodedata
import zlib

import msgspec
from markupsafe import Markup

_LONGEST_LINE = 2000
_UNSAFE_IN_SCRIPT = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def shortened(text: str, limit: int, gap: str = "\n") -> str:
    """The text, or its beginning and end around `… N more characters …`."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    left_out = len(text) - limit
    return f"{text[: limit - tail]}{gap}… {left_out:,} more characters …{gap}{text[-tail:]}"


def visible(value: object) -> object:
    """Any string on one line of bounded length, control and formatting characters spelt out.

    Markup, which is ours, and what is no string stay as they are.
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    text = shortened(value, _LONGEST_LINE, " ")
    return text if text.isprintable() else "".join(map(_spelt, text))


def _spelt(char: str) -> str:
    hidden = unicodedata.category(char)[0] == "C" or char in "\u2028\u2029"
    return repr(char)[1:-1] if hidden else char


def json_block(value: object) -> Markup:
    """JSON that cannot end the script element in which it stands."""
    text = msgspec.json.encode(value).decode()
    return Markup("".join(_UNSAFE_IN_SCRIPT.get(char, char) for char in text))


def packed(value: object) -> Markup:
    """JSON, deflated, in base64: for what a page unpacks only when it is needed."""
    return Markup(base64.b64encode(zlib.compress(msgspec.json.encode(value), 6)).decode())


def data_uri(kind: str, data: bytes) -> Markup:
    """A `data:` address that holds a file of the given media type."""
    return Markup(f"data:{kind};base64,{base64.b64encode(data).decode()}")


def content_hash(text: str) -> str:
    """The hash by which a Content-Security-Policy allows an inline style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
