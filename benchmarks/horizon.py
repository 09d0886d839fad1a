"""Measure how long a whole horizon measurement takes beside the model. Prints Markdown.

    python benchmarks/horizon.py [--horizons 4,64,1000000] [--precision 0.15]

A loopback server answers at once: a question is answered right with a probability that falls with
its size and crosses 50 % at the given horizon. The time is that of `numbench horizon` on all
scaled tasks, from its start to its table: choosing sizes, generating questions, sending them,
scoring and estimating. The server is a separate process.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from numbench.journal.run_folder import read_rounds
from numbench.scoring.horizon_outcomes import read_measurements
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set

SLOPE = 4.0


def answer_to(prompt: str, horizon: float) -> str:
    """Return the answer of a model with a logistic success rate; it is the same every time."""
    task, operator, operands = load_prompt_set().parse_question(prompt)
    answer = TASKS[task].exact_answer(operator, operands)
    size = TASKS[task].difficulty(operator, operands, answer).base10
    draw = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big") / 2**64
    if draw >= 1 / (1 + math.exp(-SLOPE * math.log(horizon / size))):
        return '{"answer": "C"}' if TASKS[task].answer_kind == "letter" else '{"answer": 0}'
    if TASKS[task].answer_kind == "letter":
        return f'{{"answer": "{answer}"}}'
    text = f"[{', '.join(answer)}]" if isinstance(answer, tuple) else answer
    return f'{{"answer": {text}}}'


def serve(port: Any, horizon: float) -> None:
    """Answer requests on a free port, which is put into the queue `port`, until terminated."""

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        text = answer_to(body["messages"][-1]["content"], horizon)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 50, "completion_tokens": 10 + len(text) // 3}
        return web.json_response(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": usage | {"total_tokens": sum(usage.values())},
            }
        )

    async def run() -> None:
        app = web.Application(client_max_size=0)
        app.router.add_post("/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.put(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


def measure(port: int, out: Path, precision: float) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a measurement of all tasks into `out`."""
    command = [sys.executable, "-m", "numbench", "horizon", "--model", "openai/some"]
    command += ["--base-url", f"http://127.0.0.1:{port}", "--precision", str(precision)]
    command += ["--out", str(out)]
    before, start = os.times(), time.perf_counter()
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        env=os.environ | {"OPENAI_API_KEY": "none"},
    )
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user
    return time.perf_counter() - start, cpu - before.children_system


def main() -> None:
    """Print a row for each horizon."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--horizons", default="4,64,1000000")
    parser.add_argument("--precision", type=float, default=0.15)
    arguments = parser.parse_args()
    print("# Speed of a horizon measurement\n")
    python = platform.python_version()
    print(f"All scaled tasks, `--precision {arguments.precision:g}`; Python {python}, ", end="")
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.0f} at the start. ", end="")
    print("h50 is that of the scripted model on every task.\n")
    print("| h50 | items | rounds | seconds | CPU seconds |\n|---:|---:|---:|---:|---:|")
    for horizon in map(float, arguments.horizons.split(",")):
        ports: multiprocessing.Queue[int] = multiprocessing.Queue()
        server = multiprocessing.Process(target=serve, args=(ports, horizon), daemon=True)
        server.start()
        try:
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "run"
                seconds, cpu = measure(ports.get(timeout=60), out, arguments.precision)
                items = sum(len(each.answered) for each in read_measurements(out).values())
                rounds = len(read_rounds(out))
        finally:
            server.terminate()
            server.join()
        print(f"| {horizon:,.0f} | {items:,} | {rounds} | {seconds:.1f} | {cpu:.1f} |")


if __name__ == "__main__":
    main()
