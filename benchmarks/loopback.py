"""A loopback server with OpenAI's protocol that always sends the same answer, streamed or whole."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def serve(body: bytes, delay: float = 0.0, events: bytes = b"") -> None:
    """Print the port, then answer every request with `body` after `delay` seconds, for an hour.

    A request for a stream gets `events`.
    """
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        content = await request.read()
        if delay:
            await asyncio.sleep(delay)
        if b'"stream":true' in content:
            return web.Response(body=events, content_type="text/event-stream")
        return web.Response(body=body, content_type="application/json")

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.sleep(3600)

    asyncio.run(main())


@contextmanager
def start_server(*arguments: str) -> Iterator[str]:
    """Run a script that calls `serve` in a process and yield the URL of its API."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()
