"""API keys and other secrets: in the environment, `.env`, headers and URLs; masking in texts."""

from __future__ import annotations

import binascii
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies

from numbench.errors import BadInput

_SECRET_SUFFIXES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS", "AUTHORIZATION")
_MIN_SECRET_LENGTH = 8
_MIN_WORD_SECRET_LENGTH = 16
_NUMBER = re.compile(r"[\d\s.,:;eE+-]*")
_WORD = re.compile(r"[A-Za-z0-9]{16,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SAME_KIND = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_MIN_CHANGES = 3
_HEADER_PART = re.compile(r"[^\s,;=\"]+")
_PROXY_PASSWORD = re.compile(r"(?:.*?://)?[^:/@]*:(.+)@")
_READ_PIPES = set[Path]()
"""Named pipes that were read as `.env`, which may have a single writer."""


class EnvironmentKey(NamedTuple):
    """An API key and the environment variable that holds it."""

    variable: str
    key: str


def key_from_environment(variables: Iterable[str]) -> EnvironmentKey | None:
    """Return the first of `variables` that is set to more than white space."""
    for variable in variables:
        if key := os.environ.get(variable, "").strip():
            return EnvironmentKey(variable, key)
    return None


def known_secrets(
    key: str | None = None, base_url: str | None = None, headers: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the key in use and the secrets of the environment, each in every encoding.

    Segments of the path of `base_url` that look like keys are secrets too. headers: values of
    headers that the user set, which may be secrets too, as may their parts: a token is repeated
    without the scheme (`Bearer`) before it.

    A server may echo any of them, because SDKs read some variables themselves. Values that are too
    short for a key (local servers take `1` or `EMPTY`), numbers and short words are left out:
    masking them would change answers.
    """
    own = [key] if key and len(key) >= _MIN_SECRET_LENGTH and not _NUMBER.fullmatch(key) else []
    named = [value.strip() for name, value in os.environ.items() if _is_secret(name, value)]
    in_path = [unquote(segment) for segment in secret_segments(base_url or "")]
    values = [part for value in headers for part in (value, *_HEADER_PART.findall(value))]
    values += [part for value in headers for part in _basic_credentials(value)]
    secrets = {*own, *in_path, *filter(_may_be_secret, (*named, *values)), *_proxy_passwords()}
    forms = {form for secret in secrets for form in _encoded_forms(secret)}
    # Longest first, because one secret may be part of another.
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def mask_secrets(text: str, secrets: Sequence[str]) -> str:
    """Return `text` with every occurrence of the secrets replaced by `[key]`."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text


def _basic_credentials(header: str) -> list[str]:
    """Return the credentials in the value of a header with HTTP Basic authentication."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return []
    try:
        decoded = binascii.a2b_base64(encoded.encode() + b"==").decode(errors="replace")
    except binascii.Error:
        return []
    return [decoded, decoded.partition(":")[2]]


def _proxy_passwords() -> list[str]:
    """Return the passwords in the URLs of the environment's proxies."""
    passwords = (_PROXY_PASSWORD.search(proxy) for proxy in getproxies().values())
    return [form for found in passwords if found for form in (found[1], unquote(found[1]))]


def mask_json(node: Any, secrets: Sequence[str] | None = None) -> Any:
    """Return a JSON value without the secrets of the environment, and of fields named like one."""
    secrets = known_secrets() if secrets is None else secrets
    if isinstance(node, Mapping):
        return {
            name: "[key]" if _is_secret(name, value) else mask_json(value, secrets)
            for name, value in node.items()
        }
    if isinstance(node, list | tuple):
        return [mask_json(value, secrets) for value in node]
    return mask_secrets(node, secrets) if isinstance(node, str) else node


def named_secrets(node: object) -> tuple[str, ...]:
    """Return the values of the fields of a JSON value that are named like secrets, to be masked."""
    found: list[str] = []
    nodes = [node]
    while nodes:
        each = nodes.pop()
        if isinstance(each, Mapping):
            found += [value for name, value in each.items() if _is_secret(name, value)]
            nodes += each.values()
        elif isinstance(each, list | tuple):
            nodes += each
    return tuple(
        form for secret in filter(_may_be_secret, found) for form in _encoded_forms(secret)
    )


def _is_secret(name: str, value: object) -> bool:
    return isinstance(value, str) and name.upper().endswith(_SECRET_SUFFIXES)


def _may_be_secret(value: str) -> bool:
    if len(value) < _MIN_SECRET_LENGTH or _NUMBER.fullmatch(value):
        return False
    return len(value) >= _MIN_WORD_SECRET_LENGTH or not value.isalpha()


def _encoded_forms(secret: str) -> Iterable[str]:
    """Return the secret as it is, in JSON, in a Python literal, and in a URL."""
    return (
        secret,
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
        quote(secret, safe="", errors="replace"),
    )


def load_env_file() -> None:
    """Add the variables of `.env` to the environment; those that are set already are kept.

    Raises BadInput if the file cannot be read.
    """
    path = Path(".env").absolute()
    if not path.exists() or path in _READ_PIPES:
        return
    from dotenv import load_dotenv

    try:
        # Windows writes a byte order mark, which some versions of python-dotenv do not skip.
        load_dotenv(stream=StringIO(path.read_text("utf-8-sig")), override=False)
    except (OSError, ValueError) as error:
        # Text that is not UTF-8, or a value that the environment cannot hold.
        raise BadInput(f"{path} cannot be read: {error}") from None
    if path.is_fifo():
        _READ_PIPES.add(path)


def check_api_key(variable: str, key: str) -> None:
    """Raise BadInput if the key contains a character that is not allowed in HTTP headers.

    The message names the variable and does not contain the key.
    """
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadInput(
            f"{variable} contains a character that no key has, such as a space, a line break or a "
            "typographic quote: set it again"
        )


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

    def masked(segment: str) -> str:
        digest = hashlib.sha256(segment.encode()).hexdigest()
        return f"[key-{digest[:8]}]" if _looks_random(unquote(segment)) else segment

    parts = urlsplit(base_url)
    return parts._replace(path="/".join(map(masked, parts.path.split("/")))).geturl()


def _looks_random(segment: str) -> bool:
    if _UUID.search(segment):
        return True
    return any(
        len(_SAME_KIND.findall(word)) > _MIN_CHANGES and not word.isalpha()
        for word in _WORD.findall(segment)
    )
