"""The URL of a server: how it is written, and whether the server may see a key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from numbench.core.secrets import mask_secret_segments
from numbench.errors import BadInput

_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
_REQUEST_PATH = re.compile(r"/(?:(?:chat/)?completions|responses|messages|models)$")
_MALFORMED_URL = "--base-url: not a URL such as http://127.0.0.1:8000/v1"


def is_loopback(base_url: str) -> bool:
    """Return whether the server of a URL is on this machine."""
    host = _host(base_url)
    address = _address(host)
    if address is None:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


def is_host_of(hosts: Sequence[str], base_url: str) -> bool:
    """Return whether a server is one of a provider's hosts, or below one, through https."""
    host = _host(base_url)
    is_own = any(host == each or host.endswith(f".{each}") for each in hosts)
    return is_own and urlsplit(base_url).scheme == "https"


def may_see_keys(base_url: str) -> bool:
    """Return whether a URL is that of https, or of plain HTTP in a private network.

    Names without a dot and with a suffix for private networks count as private.
    """
    host, scheme = _host(base_url), urlsplit(base_url).scheme
    address = _address(host)
    is_private_name = host[:1].isalpha() and ("." not in host or host.endswith(_PRIVATE_SUFFIXES))
    is_private = is_private_name if address is None else address.is_private or address.is_link_local
    return scheme == "https" or (scheme == "http" and is_private)


def normalize_base_url(base_url: str, key_variables: Sequence[str]) -> str:
    """Return `base_url` as it is written to `run.json`, without keys in its path or a final slash.

    Raises BadInput if it is malformed, contains a user name, a query string or a fragment, or ends
    in the path of a request. The message repeats no other part of the URL, which may contain a
    password.
    """
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
        is_address = ":" in host and bool(ip_address(host.partition("%")[0]))
        is_valid_host = is_address or bool(host and host.encode("idna"))
    except ValueError:
        raise BadInput(_MALFORMED_URL) from None
    is_plain = base_url.isprintable() and " " not in base_url
    if not (is_valid_host and is_plain and parts.scheme in ("http", "https")):
        raise BadInput(_MALFORMED_URL)
    if "@" in parts.netloc:
        variable = " or ".join(key_variables) or "the environment variable of the provider"
        raise BadInput(f"--base-url contains a user name: set the server's key in {variable}")
    if "?" in base_url or "#" in base_url:
        raise BadInput("--base-url: query strings and fragments (? and #) are not supported")
    path = parts.path.rstrip("/")
    if end := _REQUEST_PATH.search(path):
        raise BadInput(f"--base-url: omit {end[0]!r} at its end, which requests add themselves")
    written_host = f"[{host}]" if is_address else host
    url = f"{parts.scheme}://{written_host}{f':{port}' if port else ''}{path}"
    return mask_secret_segments(url)


def _host(base_url: str) -> str:
    return (urlsplit(base_url).hostname or "").rstrip(".")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, None if it is a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None
