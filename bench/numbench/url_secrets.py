"""Keys in the paths of URLs, which some gateways take there instead of in a header."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote, urlsplit

_WORD = re.compile(r"[A-Za-z0-9]{16,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SAME_KIND = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_MIN_CHANGES = 3


def secret_segments(base_url: str) -> list[str]:
    """Return the segments of a URL's path that look like keys: long and random.

    That is a UUID, or at least 16 letters and digits in a row that change at least three times
    between lower case, upper case and digits.
    """
    segments = urlsplit(base_url).path.split("/")
    return [segment for segment in segments if _looks_random(unquote(segment))]


def mask_secret_segments(base_url: str) -> str:
    """Return a URL with `[key-HASH]` in place of the segments of its path that look like keys.

    The hash keeps the URLs of different servers, or of different models on one, apart.
    """
    parts = urlsplit(base_url)
    secrets = secret_segments(base_url)
    segments = [
        f"[key-{hashlib.sha256(segment.encode()).hexdigest()[:8]}]"
        if segment in secrets
        else segment
        for segment in parts.path.split("/")
    ]
    return parts._replace(path="/".join(segments)).geturl()


def _looks_random(segment: str) -> bool:
    if _UUID.search(segment):
        return True
    return any(
        len(_SAME_KIND.findall(word)) > _MIN_CHANGES and not word.isalpha()
        for word in _WORD.findall(segment)
    )
