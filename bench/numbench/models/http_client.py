"""Requests to providers: one HTTP client, whole and bounded responses, failures in words.

The client is httpx2's. It reads the proxies and certificates of the environment (`HTTPS_PROXY`,
`ALL_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import time
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from numbench.models.base import DEFAULT_TIMEOUT_SECONDS
from numbench.models.failures import (
    ProviderError,
    connection_failure,
    run_failure,
    timeout_failure,
    wrong_server_failure,
)
from numbench.models.json_fields import decoded, objects_at, tokens_at
from numbench.records import Failure

if TYPE_CHECKING:
    import httpx2

MAX_RESPONSE_BYTES = 64 * 2**20
"""The largest response that is read, decompressed; the longest answers take a few megabytes."""

MAX_BATCH_RESPONSE_BYTES = 4 * 2**30
"""The same for the results of batch jobs."""

_CONNECT_SECONDS = 20.0
_IDLE_SECONDS = 3.0
"""An idle connection is kept for a shorter time than by any server: uvicorn closes it after 5 s."""

_KEEPALIVE_OPTIONS = {
    "TCP_KEEPIDLE": 60,
    "TCP_KEEPALIVE": 60,
    "TCP_KEEPINTVL": 15,
    "TCP_KEEPCNT": 4,
}
"""Seconds until the first probe (by its names on Linux and macOS) and between probes; their number.

A connection that was cut off is noticed within two minutes, and one that is silent stays open.
"""


_PROXY_ADVICE = "; correct the proxy of the environment, or name the server in NO_PROXY"


class Reply(NamedTuple):
    """A response. headers: their names in any case. cut: why it ends early, None if it is whole."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    cut: Failure | None = None

    @property
    def is_success(self) -> bool:
        """Whether the status says so."""
        return 200 <= self.status < 300


class HttpClient:
    """Sends complete requests and reads bounded responses; no redirects, retries and cookies."""

    def __init__(self, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._max_response_bytes = max_response_bytes
        self._clients: list[httpx2.AsyncClient] = []
        self._idle: list[httpx2.AsyncClient] = []
        self._urls: dict[str, httpx2.URL] = {}
        self._certificates: ssl.SSLContext | None = None
        self._has_connected = False

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> Reply:
        """Return the response, of any status, as far as it was received.

        Raises ProviderError if there is none in time.
        """
        trace, cut = _Trace(), None
        try:
            async with asyncio.timeout(seconds):
                await self._request(method, url, headers, body, trace)
        except TimeoutError:
            cut = timeout_failure(seconds or 0)
            if not trace.was_sent:
                reason = f"cannot connect to {trace.peer} within {seconds:g} s"
                cut = connection_failure(reason, was_sent=False)
        except Exception as error:
            cut = self._failure(error, trace)
            if cut is None:
                raise
        if trace.response is None:
            assert cut is not None
            raise ProviderError(cut)
        content = b"".join(trace.parts)
        return Reply(trace.response.status_code, trace.response.headers, content, cut)

    def _client(self, url: str) -> httpx2.AsyncClient:
        """Return a new client. Raises ProviderError for a wrong environment.

        url: of the server, which decides whether certificates are needed.
        """
        import httpx2

        self._certificates = self._certificates or _trusted_certificates(url)
        try:
            for proxy in _proxies().values():
                # It raises ValueError for a port that httpx2 takes, and no connection has.
                _ = urlsplit(proxy if "://" in proxy else f"//{proxy}").port
            client = httpx2.AsyncClient(
                verify=self._certificates,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
                limits=httpx2.Limits(keepalive_expiry=_IDLE_SECONDS),
            )
        except (ValueError, httpx2.InvalidURL):
            # Its message has the password.
            raise ProviderError(run_failure(_wrong_proxy())) from None
        self._clients.append(client)
        return client

    def _failure(self, error: BaseException, trace: _Trace) -> Failure | None:
        """Return the failure for an error of the client, None if it is another error."""
        import httpx2

        if isinstance(error, ProviderError):
            return error.failure
        if isinstance(error, httpx2.InvalidURL):
            return wrong_server_failure(error)
        if not isinstance(error, httpx2.RequestError):
            return None
        cause = _innermost(error)
        reason = _reason(cause)
        if isinstance(error, httpx2.ProxyError):
            return run_failure(f"{trace.peer} refused: {reason}{_PROXY_ADVICE}")
        if trace.was_sent:
            return connection_failure(reason)
        if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
            return run_failure(f"{reason}: lower --concurrency, or raise the limit (ulimit -n)")
        message = f"cannot connect to {trace.peer}: {reason}"
        if not self._has_connected and trace.has_proxy:
            return run_failure(message + _PROXY_ADVICE)
        if not self._has_connected and isinstance(cause, socket.gaierror | ssl.SSLError):
            return wrong_server_failure(message)
        # A host that has answered before is only out of reach.
        return connection_failure(message, was_sent=False)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.aclose()

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, trace: _Trace
    ) -> None:
        import httpx2

        # A client has one connection: httpx2 looks at all of a client's connections per request.
        client = self._idle.pop() if self._idle else self._client(url)
        try:
            parsed = self._urls[url] = self._urls.get(url) or httpx2.URL(url)
            trace.server = trace.peer = _address(
                # As the connection reports it: an internationalized name in ASCII.
                parsed.raw_host.decode("ascii"),
                parsed.port or {"http": 80, "https": 443}.get(parsed.scheme),
            )
            extensions = {"trace": trace}
            async with client.stream(
                method, parsed, headers=headers, content=body, extensions=extensions
            ) as trace.response:
                self._has_connected = True
                size = 0
                async for part in trace.response.aiter_bytes():
                    size += len(part)
                    if size > self._max_response_bytes:
                        trace.parts.clear()
                        limit = self._max_response_bytes >> 20
                        failure = connection_failure(f"the response is larger than {limit} MiB")
                        raise ProviderError(failure)
                    trace.parts.append(part)
        finally:
            self._idle.append(client)


class _Trace:
    """One request: its peer, whether it was sent there, and what was received."""

    server = peer = ""
    was_sent = has_proxy = False
    response: httpx2.Response | None = None

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            # A proxy is asked for a connection to the server first.
            self.was_sent = info["request"].method != b"CONNECT"
        elif event.endswith("connect_tcp.started"):
            address = _address(info["host"], info["port"])
            self.has_proxy = address != self.server
            self.peer = f"the proxy {address}" if self.has_proxy else address
        elif event.endswith("connect_tcp.complete"):
            _keep_alive(info["return_value"].get_extra_info("socket"))


def _address(host: str, port: object) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _keep_alive(connected: socket.socket) -> None:
    """Let the operating system probe the connection while it is idle."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE_OPTIONS.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _innermost(error: BaseException) -> BaseException:
    """Return the first cause of an error, which libraries keep as a cause or an argument."""
    inner = error.__cause__ or next((a for a in error.args if isinstance(a, BaseException)), None)
    return error if inner is None else _innermost(inner)


def _reason(cause: BaseException) -> str:
    if isinstance(cause, ConnectionError) and cause.errno:
        # asyncio replaces the system's text by one that repeats the address.
        return os.strerror(cause.errno)
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__


def _trusted_certificates(url: str) -> ssl.SSLContext:
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        if urlsplit(url).scheme != "https":
            return ssl.create_default_context()
        variable = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        reason = f"{variable}={os.environ.get(variable)}: {error.strerror or error}"
        raise ProviderError(run_failure(reason)) from None


def _proxies() -> dict[str, str]:
    """Return the proxies of the environment that apply to HTTP, by scheme."""
    return {name: url for name, url in getproxies().items() if name in ("http", "https", "all")}


def _wrong_proxy() -> str:
    names = " or ".join(f"{scheme}_proxy" for scheme in _proxies())
    return (
        f"{names} is not the URL of a proxy: it starts with http://, https://, socks5:// or "
        "socks5h://, has a host and a port, and a password in it has %23 for # and %2F for /"
    )


_LISTING_SECONDS = 2.0
_MAX_LISTING_BYTES = 1 << 20


def server_context(base_url: str, model: str) -> int | None:
    """Return the tokens of prompt and answer together, None if the server does not tell.

    vLLM and SGLang list `max_model_len`, llama.cpp the context of each slot. No key is sent.
    """
    import httpx2

    url = f"{base_url.rstrip('/')}/models"
    content, deadline = b"", time.monotonic() + _LISTING_SECONDS
    try:
        with httpx2.stream("GET", url, timeout=_LISTING_SECONDS) as reply:
            for part in reply.iter_bytes():
                content += part
                if len(content) > _MAX_LISTING_BYTES or time.monotonic() > deadline:
                    return None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
        return None
    listed = objects_at(decoded(content), "data")
    entry = next((each for each in listed if each.get("id") == model or len(listed) == 1), None)
    return tokens_at(entry, "max_model_len") or tokens_at(entry, "meta.n_ctx") or None
