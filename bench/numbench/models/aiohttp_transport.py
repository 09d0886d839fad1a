"""An httpx transport over aiohttp, for the SDKs of OpenAI and Google.

httpx's own connection pool becomes slower with every connection: with some hundred concurrent
requests it takes several times as much time per request.
"""

from __future__ import annotations

import aiohttp
import httpx
from yarl import URL

_CONNECT_SECONDS = 20.0
# Response headers are forwarded as bytes because they need not be ASCII. aiohttp decodes the body
# and sets these request headers itself.
_DROPPED_RESPONSE_HEADERS = frozenset(
    {b"content-encoding", b"content-length", b"transfer-encoding"}
)
_DROPPED_REQUEST_HEADERS = frozenset({"host", "content-length", "accept-encoding", "connection"})


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends complete requests and reads complete responses.

    Time limits are up to the caller, except that for connecting.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`. Raises httpx.TransportError if no complete response is received."""
        if self._session is None:
            self._session = _create_session()
        headers = [
            (k, v) for k, v in request.headers.multi_items() if k not in _DROPPED_REQUEST_HEADERS
        ]
        try:
            async with self._session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=headers,
                data=await request.aread(),
                allow_redirects=False,
            ) as response:
                content = await response.read()
        except aiohttp.ClientError as error:
            # Some of aiohttp's errors have no message.
            raise httpx.TransportError(str(error) or type(error).__name__) from error
        raw_headers = [
            (k, v) for k, v in response.raw_headers if k.lower() not in _DROPPED_RESPONSE_HEADERS
        ]
        return httpx.Response(response.status, headers=raw_headers, content=content)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _create_session() -> aiohttp.ClientSession:
    """Return a session without a limit on connections, with the proxies of the environment."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=httpx.create_ssl_context()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=True,
    )
