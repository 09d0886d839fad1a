"""How fast a run is: items per second and CPU per item against a loopback server. Markdown.

    python benchmarks/runner.py [--items 4500] [--concurrency 64,512] [--delays 0,200]
                                [--inspect PYTHON]

The server answers at once, or after the given milliseconds. Beside a whole `numbench run`,
journal included, stand clients that only send the requests: raw aiohttp, the openai SDK, litellm;
and a whole evaluation by inspect_ai, where the interpreter PYTHON (by default this one) has it with
the openai that it wants. Each is a process of its own; the server is another, on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

QUESTION = "What is 522580000 - 0.00000883311?"
TARGET = "522579999.999991"
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": f'{{"answer": {TARGET}}}'},
        }
    ],
    "usage": {"prompt_tokens": 185, "completion_tokens": 20, "total_tokens": 205},
}


def serve(delay: float) -> None:
    """An OpenAI-compatible server on 127.0.0.1 that prints its port and always answers alike."""
    from aiohttp import web

    body = json.dumps(ANSWER).encode()

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        if delay:
            await asyncio.sleep(delay)
        return web.Response(body=body, content_type="application/json")

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(site._server.sockets[0].getsockname()[1], flush=True)  # type: ignore[union-attr]
        await asyncio.sleep(3600)

    asyncio.run(main())


async def drive(ask: Callable[[], Awaitable[object]], items: int, concurrency: int) -> None:
    """Ask `items` times, `concurrency` at once."""
    left = iter(range(items))

    async def work() -> None:
        for _ in left:
            await ask()

    await asyncio.gather(*(work() for _ in range(concurrency)))


def whole_run(url: str, items: int, concurrency: int) -> None:
    """`numbench run` without its display."""
    from bench.dataset.store import open_dataset
    from bench.runner import run
    from bench.runner.spec import RunSpec

    with tempfile.TemporaryDirectory() as folder:
        limit = items // len(open_dataset("v1").tasks)
        spec = RunSpec("openai/m", limit=limit, base_url=url, out=Path(folder) / "run")
        run(spec, concurrency=concurrency, on_progress=lambda _: None)


def raw_aiohttp(url: str, items: int, concurrency: int) -> None:
    """The same requests by aiohttp alone."""
    import aiohttp

    async def main() -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            message = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}

            async def ask() -> None:
                async with session.post(f"{url}/chat/completions", json=message) as response:
                    await response.json()

            await drive(ask, items, concurrency)

    asyncio.run(main())


def openai_sdk(url: str, items: int, concurrency: int) -> None:
    """The same requests by the openai SDK with its own client."""
    import openai

    async def main() -> None:
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        await drive(
            lambda: client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": QUESTION}]
            ),
            items,
            concurrency,
        )

    asyncio.run(main())


def litellm_client(url: str, items: int, concurrency: int) -> None:
    """The same requests by litellm."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    async def main() -> None:
        await drive(
            lambda: litellm.acompletion(
                model="openai/m",
                api_base=url,
                api_key="none",
                messages=[{"role": "user", "content": QUESTION}],
            ),
            items,
            concurrency,
        )

    asyncio.run(main())


def inspect_eval(url: str, items: int, concurrency: int) -> None:
    """A whole evaluation by inspect_ai."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import match

    samples = MemoryDataset(
        [Sample(id=n, input=QUESTION, target=TARGET) for n in range(1, items + 1)]
    )
    with tempfile.TemporaryDirectory() as folder:
        (log,) = inspect_ai.eval(
            inspect_ai.Task(dataset=samples, scorer=match()),
            model="openai/m",
            model_base_url=url,
            model_args={"api_key": "none", "responses_api": False},
            max_connections=concurrency,
            max_samples=concurrency,
            display="none",
            log_dir=folder,
        )
        if log.status != "success" or log.results is None:
            raise SystemExit(f"inspect_ai: {log.status} {log.error}")
        if log.results.completed_samples != items:
            raise SystemExit(f"inspect_ai: {log.results.completed_samples} of {items} samples")


CLIENTS: dict[str, tuple[Callable[[str, int, int], None], int]] = {
    "numbench run": (whole_run, 1),
    "aiohttp (raw)": (raw_aiohttp, 1),
    "openai SDK": (openai_sdk, 3),
    "litellm": (litellm_client, 3),
    "inspect_ai eval": (inspect_eval, 9),
}
"""Each client with the divisor of its items: the slow ones need fewer to be measured."""


def measure(
    python: str, client: str, url: str, items: int, concurrency: int
) -> tuple[float, float]:
    """Items per second and CPU milliseconds per item of a process, its start-up taken out."""
    command = [python, __file__, "--client", client, "--url", url]
    costs = []
    for count in (9, items):
        arguments = ["--items", str(count), "--concurrency", str(concurrency)]
        start = time.perf_counter()
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{client} failed")
        costs.append((time.perf_counter() - start, usage.ru_utime + usage.ru_stime))
    wall, cpu = (large - small for small, large in zip(*costs, strict=True))
    return (items - 9) / wall, cpu / (items - 9) * 1000


def has_inspect(python: str) -> bool:
    """Whether the interpreter `python` can import inspect_ai."""
    found = (
        "import sys; from importlib.util import find_spec; sys.exit(not find_spec('inspect_ai'))"
    )
    return subprocess.run([python, "-c", found]).returncode == 0


def table(items: int, concurrencies: list[int], delay: int, inspect: str) -> None:
    """All clients against one server."""
    pythons = dict.fromkeys(CLIENTS, sys.executable) | {"inspect_ai eval": inspect}
    if not has_inspect(inspect):
        del pythons["inspect_ai eval"]
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(delay / 1000)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        print(f"## Answers {f'after {delay} ms' if delay else 'at once'}\n")
        print("| client | in flight | items/s | : numbench | CPU ms an item |")
        print("|---|---:|---:|---:|---:|")
        for concurrency in concurrencies:
            ours = None
            for client, python in pythons.items():
                rate, cpu = measure(python, client, url, items // CLIENTS[client][1], concurrency)
                ours = ours or rate
                ratio = rate / ours
                print(f"| {client} | {concurrency} | {rate:,.0f} | {ratio:.2f} | {cpu:.2f} |")
            if delay:
                ideal = concurrency / delay * 1000
                print(f"| *ideal* | {concurrency} | *{ideal:,.0f}* | *{ideal / ours:.2f}* | |")
        print(flush=True)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Measure and print all tables, or act as server or client."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=4500)
    parser.add_argument("--concurrency", default="64,512")
    parser.add_argument("--delays", default="0,200")
    parser.add_argument("--inspect", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
    elif options.client:
        CLIENTS[options.client][0](options.url, options.items, int(options.concurrency))
    else:
        print("# Speed of a run\n")
        print(f"`make bench`, Python {platform.python_version()}, {os.cpu_count()} cores.\n")
        for delay in map(int, options.delays.split(",")):
            concurrencies = list(map(int, options.concurrency.split(",")))
            table(options.items, concurrencies, delay, options.inspect)


if __name__ == "__main__":
    main()
