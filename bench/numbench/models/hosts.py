"""Hosts of servers: which are on this machine or in a private network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from numbench.errors import BadInput

_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


def is_loopback(base_url: str) -> bool:
    """Return whether the server of a URL is on this machine."""
    host = _host(base_url)
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def check_transport(base_url: str) -> None:
    """Raise BadInput for plain HTTP to a server that is not in a private network.

    Names without a dot and with a suffix for private networks count as private.
    """
    host = _host(base_url)
    address = _address(host)
    is_private_name = "." not in host or host.endswith(_PRIVATE_SUFFIXES)
    is_private = is_private_name if address is None else address.is_private or address.is_link_local
    if urlsplit(base_url).scheme == "http" and not is_private:
        raise BadInput(
            f"--base-url: http://{host} would send prompts and key in plain text; use https://, or "
            "add --allow-http"
        )


def _host(base_url: str) -> str:
    return (urlsplit(base_url).hostname or "").rstrip(".")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, which may be written as one number."""
    is_number = host[:1].isdigit() and "." not in host and ":" not in host
    try:
        return ip_address(int(host, 0) if is_number else host.partition("%")[0])
    except ValueError:
        return None
