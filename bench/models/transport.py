"""The openai SDK's HTTP over aiohttp: httpx's own connection pool slows down with every
connection it holds, to a tenth of the speed at some hundred requests in flight.
"""

from __future__ import annotations

import aiohttp
import httpx
from yarl import URL

_CONNECT_SECONDS = 20.0
# Headers are passed on as bytes: a server's own need not be ASCII. The body arrives decoded and
# whole; what aiohttp sets itself must not be set twice.
_NOT_PASSED_ON = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
_SET_BY_AIOHTTP = frozenset({"host", "content-length", "accept-encoding", "connection"})


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Whole requests and whole responses; time limits are the caller's, but for connecting."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`. httpx.TransportError where no whole response came back."""
        if self._session is None:
            self._session = _session()
        kept = [(k, v) for k, v in request.headers.multi_items() if k not in _SET_BY_AIOHTTP]
        try:
            async with self._session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=kept,
                data=await request.aread(),
                allow_redirects=False,
            ) as response:
                content = await response.read()
        except aiohttp.ClientError as error:
            # Some of aiohttp's errors say nothing but their name.
            raise httpx.TransportError(str(error) or type(error).__name__) from error
        headers = [(k, v) for k, v in response.raw_headers if k.lower() not in _NOT_PASSED_ON]
        return httpx.Response(response.status, headers=headers, content=content)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _session() -> aiohttp.ClientSession:
    """No limit on connections: the number of workers is one. Proxies as the environment says."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=httpx.create_ssl_context()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=True,
    )
