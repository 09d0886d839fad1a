"""Runs of small datasets against a scripted server, with short waits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from numbench.dataset.store import write_dataset
from numbench.records import Item
from numbench.runner.execution import run
from numbench.runner.progress import RunReport, ScoreCallback
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


async def good(received: ReceivedRequest) -> Reply:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "completion_tokens_details": {"reasoning_tokens": 1},
        "cost": 0.5,
    }
    return servers.chat(usage=usage)
