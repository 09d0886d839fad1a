"""Runs of small datasets against a scripted server, with short waits."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from numbench.dataset.store import write_dataset
from numbench.records import DatasetRef, Item, PromptRef, RunInfo
from numbench.runner.execution import run
from numbench.runner.progress import RunProgress, RunReport, ScoreCallback
from numbench.runner.retrying import RetryPolicy
from numbench.runner.spec import RunSpec
from numbench.tasks.items import make_item
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply

KEY = "sk-planted-0123456789"
ROOT = Path(__file__).parents[2]
MODEL = "openai/some"
QUICK = RetryPolicy(
    backoff=0.01,
    max_backoff=0.05,
    outage_timeout=0.0,
    poll_interval=0.01,
    max_poll_interval=0.02,
    job_lookup_timeout=0.3,
)
"""Short waits, and no outage if several items fail."""


INFO = RunInfo(
    model="m",
    display="M",
    reasoning="none",
    dataset=DatasetRef(name="v1", path="../v1", sha256="a" * 64),
    prompt=PromptRef(name="paper", sha256="b" * 64),
    tasks=("mean",),
    limit=5,
    settings={"temperature": 0.0, "request": {"reasoning_effort": "low"}},
    versions={"numbench": "0.1.0"},
    created="2025-01-01T00:00:00+00:00",
)
"""The description of a run of a few questions."""


@cache
def questions(count: int) -> dict[str, list[Item]]:
    return {
        "addition": [make_item("addition", "+", (str(n), "1"), {}) for n in range(1, count + 1)],
        "minmax": [
            make_item("minmax", "minimum", (str(n), "500.5"), {}) for n in range(1, count + 1)
        ],
    }


def small_dataset(folder: Path, count: int) -> Path:
    write_dataset(
        folder,
        questions(count),
        name="small",
        generator="test",
        seed=None,
        split="test",
        settings={},
    )
    return folder


def go(server: servers.Server, dataset: Path, out: Path, **changes: Any) -> RunReport:
    arguments: dict[str, Any] = {"model": MODEL, "dataset": dataset, "out": out}
    return run_with(**(arguments | {"base_url": server.url} | changes))


def run_with(
    judge: ScoreCallback | None = None,
    kind: type[RunSpec] = RunSpec,
    policy: dict[str, Any] | None = None,
    **options: Any,
) -> RunReport:
    """`run` without progress, with changes to the policy `QUICK`."""
    spec = kind(**({"on_progress": lambda now: None} | options))
    return run(spec, judge, replace(QUICK, **(policy or {})))


class Moment(threading.Event):
    """The `on_progress` of a run that is set, and acts, once the progress is as a test wants it."""

    def __init__(
        self, has_come: Callable[[RunProgress], bool], act: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__()
        self._has_come, self._act = has_come, act

    def __call__(self, now: RunProgress) -> None:
        if not self.is_set() and self._has_come(now):
            self.set()
            self._act()

    async def reached(self) -> None:
        """Let a server wait."""
        while not self.is_set():
            await asyncio.sleep(0.01)


def stopping(act: Callable[[], object] = lambda: None) -> Moment:
    """The moment from which a run only waits for its requests in flight."""
    return Moment(lambda now: now.note.startswith("stopping: "), act)


def set_prices(
    monkeypatch: pytest.MonkeyPatch, folder: Path, prices: dict[str, tuple[float, float]]
) -> None:
    """Let a million tokens in and out of some routes cost US dollars, by a user's catalogue."""
    rows = (
        f'[[price]]\nroute = "{route}"\ninput = {read}\noutput = {written}\ndate = "2025-03-04"\n'
        for route, (read, written) in prices.items()
    )
    (folder / "prices.toml").write_text("".join(rows))
    monkeypatch.setenv("NUMBENCH_CATALOGUE", str(folder / "prices.toml"))


async def good(received: ReceivedRequest) -> Reply:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "completion_tokens_details": {"reasoning_tokens": 1},
        "cost": 0.5,
    }
    return servers.chat(usage=usage)


TOOL_CALL = {"content": None, "tool_calls": [{"type": "function", "function": {"name": "add"}}]}


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.5}


async def flawed(received: ReceivedRequest) -> Reply:
    """Answer Add in five ways, the first time, and MinMax always."""
    if "minimum" in received.prompt or received.number > 0:
        return servers.chat(usage=USAGE)
    if "1 + 1" in received.prompt:
        return servers.chat(usage=USAGE, message={"content": None})
    if "2 + 1" in received.prompt:
        return servers.chat(usage=USAGE, message=TOOL_CALL, finish="tool_calls")
    if "3 + 1" in received.prompt:
        return servers.chat("1 + 1 is", usage=USAGE, finish="length")
    if "4 + 1" in received.prompt:
        return servers.chat(usage=USAGE, message={"content": None, "refusal": "no"})
    return servers.error(400, "content_filter")
