"""Measure the speed of a run: items per second and CPU per item. Prints Markdown.

    python benchmarks/runner.py [--items 4500] [--concurrency 64,512] [--delays 0,200]
                                [--inspect PYTHON]

A loopback server answers immediately, or after the given delays in milliseconds. A complete
`numbench run`, including the journal, is compared with clients that only send the requests (raw
aiohttp, the openai SDK, litellm) and with a complete evaluation by inspect_ai, if the interpreter
PYTHON (default: this one) has it. Every client is a separate process, and so is the server.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.loopback import serve, start_server

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


def streamed(answer: dict[str, Any]) -> bytes:
    """Return the server-sent events of an answer, with a few characters in each."""
    (choice,), usage = answer["choices"], answer["usage"]
    head = {key: answer[key] for key in ("id", "created", "model")}
    text = choice["message"]["content"]
    pieces = [{"content": text[i : i + 2]} for i in range(0, len(text), 2)]
    choices = [{"index": 0, "delta": delta} for delta in ({"role": "assistant"}, *pieces)]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    chunks = [head | {"choices": [each]} for each in choices] + [
        head | {"choices": [], "usage": usage}
    ]
    lines = [json.dumps(chunk) for chunk in chunks] + ["[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


async def send_requests(
    request: Callable[[], Awaitable[object]], items: int, concurrency: int
) -> None:
    """Send `items` requests, `concurrency` at a time."""
    remaining = iter(range(items))

    async def worker() -> None:
        for _ in remaining:
            await request()

    await asyncio.gather(*(worker() for _ in range(concurrency)))


def streamed_run(url: str, items: int, concurrency: int) -> None:
    """The same with streamed answers."""
    os.environ["NUMBENCH_STREAM"] = "1"
    whole_run(url, items, concurrency)


def whole_run(url: str, items: int, concurrency: int) -> None:
    """`numbench run` without its progress display."""
    from numbench.dataset.store import open_dataset
    from numbench.runner.execution import run
    from numbench.runner.spec import RunSpec

    with tempfile.TemporaryDirectory() as folder:
        run(
            RunSpec(
                "openai/m",
                limit=items // len(open_dataset("v1").tasks),
                base_url=url,
                out=Path(folder) / "run",
                concurrency=concurrency,
                on_progress=lambda _: None,
            )
        )


def raw_aiohttp(url: str, items: int, concurrency: int) -> None:
    """The same requests with aiohttp."""
    import aiohttp

    async def main() -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            message = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}

            async def request() -> None:
                async with session.post(f"{url}/chat/completions", json=message) as response:
                    await response.json()

            await send_requests(request, items, concurrency)

    asyncio.run(main())


def openai_sdk(url: str, items: int, concurrency: int) -> None:
    """The same requests with the openai SDK and its default client."""
    import openai

    async def main() -> None:
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        await send_requests(
            lambda: client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": QUESTION}]
            ),
            items,
            concurrency,
        )

    asyncio.run(main())


def litellm_client(url: str, items: int, concurrency: int) -> None:
    """The same requests with litellm."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    async def main() -> None:
        await send_requests(
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
    """A complete evaluation with inspect_ai."""
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
    "numbench run, streamed": (streamed_run, 1),
    "aiohttp (raw)": (raw_aiohttp, 1),
    "openai SDK": (openai_sdk, 3),
    "litellm": (litellm_client, 3),
    "inspect_ai eval": (inspect_eval, 9),
}
"""Clients, and the divisor of their number of items: slow clients need fewer."""


def measure(
    python: str, client: str, url: str, items: int, concurrency: int
) -> tuple[float, float]:
    """Return items per second and CPU milliseconds per item, without the start-up."""
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
    """Return whether the interpreter `python` can import inspect_ai."""
    code = "import sys; from importlib.util import find_spec; sys.exit(not find_spec('inspect_ai'))"
    return subprocess.run([python, "-c", code]).returncode == 0


def table(items: int, concurrencies: list[int], delay: int, inspect: str) -> None:
    """Print the table of all clients with one server."""
    pythons = dict.fromkeys(CLIENTS, sys.executable) | {"inspect_ai eval": inspect}
    if not has_inspect(inspect):
        del pythons["inspect_ai eval"]
    with start_server(__file__, "--serve", str(delay / 1000)) as url:
        print(f"## Answers {f'after {delay} ms' if delay else 'without delay'}\n")
        print("| client | concurrency | items/s | relative to numbench | CPU ms per item |")
        print("|---|---:|---:|---:|---:|")
        for concurrency in concurrencies:
            numbench = 0.0
            for client, python in pythons.items():
                rate, cpu = measure(python, client, url, items // CLIENTS[client][1], concurrency)
                numbench = numbench or rate
                ratio = rate / numbench
                print(f"| {client} | {concurrency} | {rate:,.0f} | {ratio:.2f} | {cpu:.2f} |")
            if delay:
                ideal = concurrency / delay * 1000
                print(f"| *ideal* | {concurrency} | *{ideal:,.0f}* | *{ideal / numbench:.2f}* | |")
        print(flush=True)


def main() -> None:
    """Measure and print all tables, or act as the server or a client."""
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
        serve(json.dumps(ANSWER).encode(), options.serve, streamed(ANSWER))
    elif options.client:
        CLIENTS[options.client][0](options.url, options.items, int(options.concurrency))
    else:
        print("# Speed of a run\n")
        print(
            f"`make bench`, Python {platform.python_version()}, {os.cpu_count()} cores, load "
            f"average {os.getloadavg()[0]:.1f} at the start.\n"
        )
        for delay in map(int, options.delays.split(",")):
            concurrencies = list(map(int, options.concurrency.split(",")))
            table(options.items, concurrencies, delay, options.inspect)


if __name__ == "__main__":
    main()
