"""Runs with a tool that are killed 30 times in the middle of conversations."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from numbench.journal import iter_responses, read_run
from tests.runner.test_interruptions import KEY, start
from tests.support.runs import questions, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve
from tests.support.tools import answering, calling, expression, turn_of

pytestmark = pytest.mark.heavy
KILLS, CONCURRENCY, TURNS = 30, 4, 4


def test_every_turn_is_in_the_journal_and_none_is_paid_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server answered is stored, or counted as possibly billed."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    dataset, out, rng = small_dataset(tmp_path / "data", 100), tmp_path / "run", random.Random(0)
    prompts = {item.id: item.prompt for items in questions(100).values() for item in items}
    next_kill, enough = rng.randrange(5, 30), threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) >= next_kill:
            enough.set()
        await asyncio.sleep(rng.random() * 0.02)
        if turn_of(received) < TURNS - 1:
            return await calling(received, expression(f"1 + {turn_of(received)}"))
        return await answering(received)

    command = f"run --model openai/some --dataset {dataset} --tools calculator"
    with serve(script) as server:
        for _ in range(KILLS):
            process = start(server, command, out)
            assert enough.wait(300)
            process.kill()
            process.communicate()
            next_kill = len(server.received) + rng.randrange(5, 30)
            enough.clear()
        process = start(server, command, out)
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    served = Counter((each.prompt, turn_of(each)) for each in server.received)
    lines = list(iter_responses(out))
    stored = Counter((prompts[each.item_id], each.turn) for each in lines if each.error is None)
    lost = Counter[tuple[str, int]]()
    for each in lines:
        lost[prompts[each.item_id], each.turn] += each.possibly_billed_attempts
    assert len(stored) == 200 * TURNS and set(stored.values()) == {1}
    # A request that was logged but not yet sent when the process died counts as lost, too.
    assert 0 < lost.total() <= KILLS * CONCURRENCY
    assert all(served[turn] <= stored[turn] + lost[turn] for turn in served)
    whole = read_run(out).responses.values()
    assert {len(each.turns) for each in whole} == {TURNS - 1}
    assert {each.usage.generated for each in whole} == {4 * TURNS}
