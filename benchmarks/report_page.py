"""Measure the size of `report.html` and its loading time in a browser. Prints Markdown.

    python benchmarks/report_page.py [--runs 13] [--keep DIR]

Thirteen synthetic runs of `v1`, 58,500 responses, with short texts or with long reasoning in the
text: CPU seconds to make the report with its SVG figures, and the page loaded from disk in headless
Chromium, at full speed and with fourfold CPU throttling (similar to a phone). Seconds since
navigation; the best of three.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from numbench.dataset.store import Dataset
from numbench.journal import write_run
from numbench.records import Item, PromptRef, Response, RunInfo, Usage
from numbench.reporting import report
from numbench.resources import resource_folder

KINDS = {"short": (0, 0.01), "with reasoning": (1500, 0.05)}
"""Characters before each answer, and the share of answers that never end."""

_READ = """() => {
  const at = (name) => performance.getEntriesByName(name)[0].startTime / 1000;
  const started = performance.now();
  document.getElementById('item-search').value = '7';
  document.getElementById('item-filters').dispatchEvent(new Event('input'));
  return {
    paint: at('first-contentful-paint'),
    ready: at('numbench-items-ready'),
    filter: (performance.now() - started) / 1000,
    elements: document.querySelectorAll('*').length,
    memory: performance.memory.usedJSHeapSize / 2 ** 20,
  };
}"""


class PageTimings(NamedTuple):
    """Seconds to the first paint, to the usable list and for a search; elements; MiB of heap."""

    paint: float
    ready: float
    filter: float
    elements: int
    memory: float


def answers(items: list[Item], seed: int, thoughts: int, runaway: float) -> Iterator[Response]:
    """Yield a response per item: half correct, most others wrong in one digit, some endless."""
    draw = random.Random(seed)
    for item in items:
        truth = item.answer if isinstance(item.answer, str) else ", ".join(item.answer)
        if draw.random() < 0.5:
            index = draw.randrange(len(truth))
            truth = f"{truth[:index]}{draw.randrange(10)}{truth[index + 1 :]}"
        words = "".join(f"{draw.random():.12f} plus a digit; " for _ in range(thoughts // 28))
        text = f'{words}{{"answer": {truth}}}'
        if draw.random() < runaway:
            text = f'{words}{{"answer": 0.{"0" * 20_000}'
        tokens = draw.randrange(20, 20_000)
        usage = Usage(input=180, reasoning=tokens - 15, visible=15, generated=tokens)
        yield Response(
            item_id=item.id,
            text=text,
            finish_reason="stop",
            usage=usage,
            cost=draw.random() / 100,
            latency=draw.random() * 60,
        )


def write_runs(folder: Path, count: int, kind: str) -> None:
    """Write the synthetic runs under `folder`."""
    data = Dataset(resource_folder("datasets") / "v1")
    items = [item for of_task in data.by_task.values() for item in of_task]
    for number in range(count):
        path = folder / f"run-{number}"
        path.mkdir(parents=True)
        info = RunInfo(
            model=f"model-{number}",
            display=f"Model {number}",
            reasoning="medium",
            dataset=data.ref(path),
            prompt=PromptRef(name="paper", sha256="0" * 64),
            tasks=data.tasks,
            limit=None,
            settings={},
            versions={},
            created="2025-01-01T00:00:00Z",
        )
        write_run(path, info, answers(items, number, *KINDS[kind]))


def time_page_load(browser: Any, path: Path, slowdown: int) -> PageTimings:
    """Load the page in a new browser context and return the timings."""
    context = browser.new_context()
    page = context.new_page()
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("#browser", state="visible", timeout=120_000)
    timings = PageTimings(**page.evaluate(_READ))
    context.close()
    return timings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=13)
    parser.add_argument("--keep", type=Path, help="keep the reports in this folder")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    executable = next((found for name in names if (found := shutil.which(name))), None)
    folder = Path(tempfile.mkdtemp(prefix="numbench-"))
    print("# The report's page\n")
    print(f"`make bench`, Python {platform.python_version()}, {os.cpu_count()} cores.\n")
    print(
        "| texts | browser | MB | report, CPU | first paint | items ready | search | elements "
        "| heap MiB |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        runs, out = folder / kind, (options.keep or folder) / f"report-{kind.replace(' ', '-')}"
        write_runs(runs, options.runs, kind)
        start = time.process_time()
        path = report([runs], out=out).out / "report.html"
        written = time.process_time() - start
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            for slowdown in (1, 4):
                best = min((time_page_load(browser, path, slowdown) for _ in range(3)), key=_ready)
                print(
                    f"| {kind} | {'full speed' if slowdown == 1 else f'1/{slowdown} speed'} "
                    f"| {path.stat().st_size / 1e6:.1f} | {written:.1f} s | {best.paint:.2f} s "
                    f"| {best.ready:.2f} s | {best.filter:.2f} s | {best.elements:,} "
                    f"| {best.memory:.0f} |",
                    flush=True,
                )
            browser.close()
    shutil.rmtree(folder)


def _ready(one: PageTimings) -> float:
    return one.ready


if __name__ == "__main__":
    main()
