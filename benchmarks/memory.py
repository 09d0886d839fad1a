"""Measure the memory of a run of 100,000 items with 4 kB of reasoning each. Prints Markdown.

    python benchmarks/memory.py [--items 100000]

A complete `numbench run` against a loopback server, in a separate process; its resident memory must
not grow with the journal. Then the same command again, which reads the journal and sends no
requests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.loopback import serve, start_server

REASONING = "Carry the 1. " * 320
STEPS = 10


def answer() -> bytes:
    """Return the body of every response, with its reasoning."""
    message = {"role": "assistant", "content": '{"answer": 1}', "reasoning": REASONING}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    usage = {"prompt_tokens": 185, "completion_tokens": 1020}
    return json.dumps({"id": "x", "model": "m", "choices": choices, "usage": usage}).encode()


def run_benchmark(url: str, dataset: str, out: str) -> None:
    """Run, and print completed items, resident memory (now, maximum) and journal size, as JSON."""
    from numbench.runner.execution import run
    from numbench.runner.progress import RunProgress
    from numbench.runner.spec import RunSpec

    reported = 0

    def on_progress(now: RunProgress) -> None:
        nonlocal reported
        if now.done * STEPS // now.total > reported or now.done == now.total:
            reported = now.done * STEPS // now.total
            journal = (Path(out) / "responses.jsonl").stat().st_size
            print(json.dumps([now.done, *resident(), journal]), flush=True)

    run(
        RunSpec(
            "openai/m",
            dataset=dataset,
            base_url=url,
            out=out,
            concurrency=64,
            on_progress=on_progress,
        )
    )


def resident() -> tuple[int, int]:
    """Return the resident memory of this process in bytes: now, and the maximum.

    That of `getrusage` includes the process that started this one.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    kibibytes = dict(line.split(":") for line in lines)
    now, most = (int(kibibytes[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def main() -> None:
    """Measure and print the table, or act as the server or the run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(answer())
    elif options.ask:
        run_benchmark(*options.ask)
    else:
        measure(options.items)


def measure(items: int) -> None:
    """Run twice and print the memory."""
    from numbench.dataset.generate import generate
    from numbench.dataset.settings import DatasetSettings
    from numbench.tasks import PAPER_TASKS

    size = -(-items // len(PAPER_TASKS))
    print("# Memory of a run\n")
    print(
        f"{size * len(PAPER_TASKS):,} items in {len(PAPER_TASKS)} tasks, each answer with "
        f"{len(REASONING):,} characters of reasoning.\n"
    )
    print("| items done | resident MB | maximum MB | journal MB |\n|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, start_server(__file__, "--serve") as url:
        generate(DatasetSettings(name="large", size=size), Path(folder) / "data")
        for call in ("first", "again"):
            command = [sys.executable, __file__, "--ask", url, f"{folder}/data", f"{folder}/run"]
            result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            lines = [json.loads(line) for line in result.stdout.splitlines()]
            for items, *numbers in lines if call == "first" else lines[-1:]:
                label = f"{items:,}" if call == "first" else "the same command again"
                cells = " | ".join(f"{number / 1e6:,.0f}" for number in numbers)
                print(f"| {label} | {cells} |")


if __name__ == "__main__":
    main()
