"""Runs that are killed at random moments: what the server billed, compared with the journal."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from numbench.journal import iter_responses
from tests.support import servers
from tests.support.command_line import start
from tests.support.runs import KEY, questions, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve

pytestmark = pytest.mark.heavy
KILLS, CONCURRENCY = 12, 4


def test_every_request_of_a_run_that_is_killed_often_is_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    dataset, out, rng = small_dataset(tmp_path / "data", 200), tmp_path / "run", random.Random(0)
    prompts = {item.id: item.prompt for items in questions(200).values() for item in items}
    limited = set(rng.sample(list(prompts.values()), 80))
    next_kill, enough = rng.randrange(1, 40), threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal next_kill
        if len(server.received) >= next_kill:
            enough.set()
        if received.number == 0 and received.prompt in limited:
            return servers.error(429, headers={"Retry-After": "0"})
        await asyncio.sleep(rng.random() * 0.02)
        return servers.chat()

    with serve(script) as server:
        for _ in range(KILLS):
            process = start(server, f"run --model openai/some --dataset {dataset}", out)
            assert enough.wait(100)
            process.kill()
            process.communicate()
            next_kill = len(server.received) + rng.randrange(1, 30)
            enough.clear()
        process = start(server, f"run --model openai/some --dataset {dataset}", out)
        process.communicate(timeout=300)
        assert process.returncode == 0
    responses = list(iter_responses(out))
    answers = Counter(response.item_id for response in responses if response.error is None)
    assert len(answers) == 400 and set(answers.values()) == {1}
    lost = Counter[str]()
    for response in responses:
        lost[prompts[response.item_id]] += response.possibly_billed_attempts
    assert lost.total() <= KILLS * CONCURRENCY
    # Every item has one answer; what else the server received was rejected, or is counted as lost.
    for prompt in prompts.values():
        assert server.counts[prompt] <= 1 + (prompt in limited) + lost[prompt]
