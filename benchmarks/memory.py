"""Memory of a run as it grows: 100,000 items, every answer with 4 kB of reasoning. Markdown.

    python benchmarks/memory.py [--items 100000]

A whole `numbench run` against a loopback server that answers at once, in a process of its own;
its resident memory stands beside the size of the journal, which it must not follow. Then the same
command again, which reads that journal and asks nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REASONING = "Carry the 1. " * 320
STEPS = 10


def serve() -> None:
    """A server with OpenAI's protocol that prints its port; every answer has its reasoning."""
    from aiohttp import web

    message = {"role": "assistant", "content": '{"answer": 1}', "reasoning": REASONING}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    usage = {"prompt_tokens": 185, "completion_tokens": 1020}
    body = json.dumps({"id": "x", "model": "m", "choices": choices, "usage": usage}).encode()

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.sleep(3600)

    asyncio.run(main())


def ask(url: str, dataset: str, out: str) -> None:
    """The run; prints items done and resident memory now and then, as JSON lines."""
    from bench.runner import RunSpec, run
    from bench.runner.progress import Progress

    told = 0

    def watch(now: Progress) -> None:
        nonlocal told
        if now.done * STEPS // now.total > told or now.done == now.total:
            told = now.done * STEPS // now.total
            journal = (Path(out) / "responses.jsonl").stat().st_size
            print(json.dumps([now.done, resident(), journal]), flush=True)

    run(
        RunSpec("openai/m", dataset=dataset, base_url=url, out=Path(out)),
        concurrency=64,
        on_progress=watch,
    )


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def server() -> Iterator[str]:
    """The server in a process of its own, by its URL."""
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def main() -> None:
    """Measure and print the table, or act as server or run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
    elif options.ask:
        ask(*options.ask)
    else:
        measure(options.items)


def measure(items: int) -> None:
    """Run it twice and print what it held."""
    from bench.dataset.generate import generate
    from bench.dataset.settings import Settings
    from bench.tasks import TASKS

    size = -(-items // len(TASKS))
    print("# Memory of a run\n")
    print(
        f"{size * len(TASKS):,} items in {len(TASKS)} tasks, each answer with {len(REASONING):,} "
        "characters of reasoning.\n"
    )
    print("| items done | resident MiB | journal MiB |\n|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, server() as url:
        generate(Settings(name="large", size=size), Path(folder) / "data")
        for call in ("first", "again"):
            command = [sys.executable, __file__, "--ask", url, f"{folder}/data", f"{folder}/run"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            for items, memory, journal in lines if call == "first" else lines[-1:]:
                what = f"{items:,}" if call == "first" else "the same command again"
                print(f"| {what} | {memory / 2**20:,.0f} | {journal / 2**20:,.0f} |")


if __name__ == "__main__":
    main()
