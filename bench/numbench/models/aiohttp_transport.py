"""An httpx transport over aiohttp, for the SDKs of OpenAI and Google.

httpx's own connection pool becomes slower with every connection: with some hundred concurrent
requests it takes several times as much time per request.
"""

from __future__ import annotations

import os
import socket
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from yarl import URL

from numbench.models.request_inspection import RequestStopped, inspect_request

MAX_RESPONSE_BYTES = 64 * 2**20
"""The largest response that is read, decompressed; the longest answers take a few megabytes."""

MAX_BATCH_RESPONSE_BYTES = 4 * 2**30
"""The same for the results of batch jobs."""

_CONNECT_SECONDS = 20.0
_KEEPALIVE_OPTIONS = {
    "TCP_KEEPIDLE": 60,
    "TCP_KEEPALIVE": 60,
    "TCP_KEEPINTVL": 15,
    "TCP_KEEPCNT": 4,
}
"""Seconds until the first probe (by its names on Linux and macOS) and between probes; their number.

A connection that was cut off is noticed within two minutes, and one that is silent stays open.
"""

_WRONG_SERVER = (aiohttp.ClientConnectorDNSError, aiohttp.ClientSSLError)
# Response headers are forwarded as bytes because they need not be ASCII. aiohttp decodes the body
# and sets these request headers itself.
_DROPPED_RESPONSE_HEADERS = frozenset(
    {b"content-encoding", b"content-length", b"transfer-encoding"}
)
_DROPPED_REQUEST_HEADERS = frozenset({"host", "content-length", "accept-encoding", "connection"})


class WrongServer(httpx.ConnectError):
    """There is no such host, or it does not speak TLS as the URL says."""


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends complete requests and reads complete responses.

    Time limits are up to the caller, except that for connecting.
    """

    def __init__(self, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._max_response_bytes = max_response_bytes
        self._session: aiohttp.ClientSession | None = None
        self._has_connected = False
        self._proxies: dict[tuple[str, str], URL | None] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`.

        Raises httpx.ConnectError if there is no connection or the request is stopped by an
        inspector, and another httpx.TransportError if no complete response is received.
        """
        body = await request.aread()
        try:
            inspect_request(body)
        except RequestStopped as error:
            raise httpx.ConnectError(str(error)) from error
        if self._session is None:
            self._session = _create_session()
        url = URL(str(request.url), encoded=True)
        headers = [
            (k, v) for k, v in request.headers.multi_items() if k not in _DROPPED_REQUEST_HEADERS
        ]
        try:
            async with self._session.request(
                request.method,
                url,
                headers=headers,
                proxy=self._proxy(url),
                data=body,
                allow_redirects=False,
            ) as response:
                self._has_connected = True
                content = await self._read(response)
        except _WRONG_SERVER as error:
            # A host that has answered before is only out of reach.
            kind = httpx.ConnectError if self._has_connected else WrongServer
            raise kind(_connection_message(url, error)) from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise httpx.ConnectError(_connection_message(url, error)) from error
        except aiohttp.ClientError as error:
            # Some of aiohttp's errors have no message.
            raise httpx.TransportError(str(error) or type(error).__name__) from error
        raw_headers = [
            (k, v) for k, v in response.raw_headers if k.lower() not in _DROPPED_RESPONSE_HEADERS
        ]
        return httpx.Response(response.status, headers=raw_headers, content=content)

    def _proxy(self, url: URL) -> URL | None:
        """Return the proxy of the environment for a server, looked up once."""
        server = url.scheme, url.host or ""
        if server not in self._proxies:
            self._proxies[server] = _environment_proxy(*server)
        return self._proxies[server]

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the decompressed body. Raises httpx.TransportError if it is too large."""
        parts, size = [], 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > self._max_response_bytes:
                raise httpx.TransportError(
                    f"the response is larger than {self._max_response_bytes >> 20} MiB"
                )
            parts.append(part)
        return b"".join(parts)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _connection_message(url: URL, error: aiohttp.ClientError) -> str:
    """Return which server or proxy cannot be reached, and why."""
    host, port, reason = url.host, url.port, "timeout"
    if isinstance(error, aiohttp.ClientConnectorError):
        host, port = error.host, error.port
        reason = str(error.os_error.strerror or error.os_error)
        if isinstance(error.os_error, ConnectionError) and error.os_error.errno:
            # asyncio replaces the system's text by one that repeats the address.
            reason = os.strerror(error.os_error.errno)
    return f"cannot connect to {f'[{host}]' if ':' in str(host) else host}:{port}: {reason}"


def _create_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket whose idle connection is probed by the operating system."""
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE_OPTIONS.items():
        if hasattr(socket, name):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return created


def _environment_proxy(scheme: str, host: str) -> URL | None:
    """Return the proxy that the environment names for a host (`HTTPS_PROXY`, `NO_PROXY`)."""
    proxy = None if proxy_bypass(host) else getproxies().get(scheme)
    return URL(proxy) if proxy else None


def _create_session() -> aiohttp.ClientSession:
    """Return a session without a limit on connections.

    It does not read proxies and passwords of the environment itself: it would do so in a thread for
    every request, and refuse a request to a host for which `.netrc` has a password.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, ssl=httpx.create_ssl_context(), socket_factory=_create_socket
        ),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
