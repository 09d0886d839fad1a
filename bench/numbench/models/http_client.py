"""Requests to providers: one HTTP client, whole and bounded responses, failures in words.

It is aiohttp's, which takes a fraction of the time per request that the clients of the SDKs take.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from numbench.models.base import DEFAULT_TIMEOUT_SECONDS
from numbench.models.failures import (
    ProviderError,
    connection_failure,
    failure_from_reply,
    timeout_failure,
    wrong_server_failure,
)
from numbench.records import Failure

if TYPE_CHECKING:
    import httpx

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


class Reply(NamedTuple):
    """A complete response. headers: their names in any case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status says so."""
        return 200 <= self.status < 300


class HttpClient:
    """Sends complete requests and reads complete responses; no redirects, retries and cookies."""

    def __init__(self, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._max_response_bytes = max_response_bytes
        self._session: aiohttp.ClientSession | None = None
        self._has_connected = False
        self._proxies: dict[tuple[str, str], URL | None] = {}

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> Reply:
        """Return the response, of any status. Raises ProviderError if none was received in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._request(method, URL(url, encoded=True), headers, body)
        except aiohttp.ClientError as error:
            failure = self._failure(URL(url), error)
        except TimeoutError:
            failure = timeout_failure(seconds or 0)
        raise ProviderError(failure)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _request(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        if self._session is None:
            self._session = _create_session()
        async with self._session.request(
            method,
            url,
            headers=headers,
            proxy=self._proxy(url),
            data=body,
            allow_redirects=False,
        ) as response:
            self._has_connected = True
            parts, size = [], 0
            async for part in response.content.iter_any():
                size += len(part)
                if size > self._max_response_bytes:
                    limit = self._max_response_bytes >> 20
                    raise aiohttp.ClientError(f"the response is larger than {limit} MiB")
                parts.append(part)
            return Reply(response.status, response.headers, b"".join(parts))

    def _failure(self, url: URL, error: aiohttp.ClientError) -> Failure:
        if isinstance(error, _WRONG_SERVER) and not self._has_connected:
            return wrong_server_failure(_connection_message(url, error))
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            # A host that has answered before is only out of reach.
            return connection_failure(_connection_message(url, error), was_sent=False)
        return connection_failure(error)

    def _proxy(self, url: URL) -> URL | None:
        """Return the proxy of the environment (`HTTPS_PROXY`, `NO_PROXY`), looked up once."""
        server = url.scheme, url.host or ""
        if server not in self._proxies:
            proxy = None if proxy_bypass(server[1]) else getproxies().get(server[0])
            self._proxies[server] = URL(proxy) if proxy else None
        return self._proxies[server]


def sdk_client(client: HttpClient) -> httpx.AsyncClient:
    """Return an httpx client that sends through `client`, for the SDKs of batch APIs.

    So these have the same proxies and bounds, and follow no redirects, to which they would send
    the key. Whatever fails raises ProviderError, which may be the cause of an error of the SDK.
    """
    import httpx

    class Transport(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            own = ("host", "content-length", "accept-encoding", "connection")
            headers = {k: v for k, v in request.headers.items() if k not in own}
            body = await request.aread()
            reply = await client.request(request.method, str(request.url), headers, body, None)
            if not reply.is_success:
                raise ProviderError(failure_from_reply(reply.status, reply.headers, reply.content))
            # The body is decompressed already, and its length another one.
            dropped = ("content-encoding", "content-length", "transfer-encoding")
            kept = {k: v for k, v in reply.headers.items() if k.lower() not in dropped}
            return httpx.Response(reply.status, headers=kept, content=reply.content)

    return httpx.AsyncClient(transport=Transport(), timeout=None)


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


def _create_session() -> aiohttp.ClientSession:
    """Return a session without a limit on connections.

    It does not read proxies and passwords of the environment itself: it would do so in a thread for
    every request, and refuse a request to a host for which `.netrc` has a password.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=_certificates(), socket_factory=_create_socket),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Return the trusted certificates. Reading them takes longer than a session's other parts."""
    import httpx

    return httpx.create_ssl_context()
