"""Runs that are killed at random moments: what the server billed, compared with the journal."""

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from numbench.journal.run_folder import iter_responses, read_run
from tests.support import servers
from tests.support.command_line import CONCURRENCY, start
from tests.support.horizon_runs import (
    assert_nothing_was_asked_twice,
    assert_same_measurement,
    kill_often,
    measure,
    model,
    read_outcomes,
)
from tests.support.runs import KEY, questions, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve
from tests.support.tools import answering, calling, expression, turn_of

pytestmark = pytest.mark.heavy
TURNS = 4


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


class KilledRun:
    """A run that is killed whenever its server has received some more requests."""

    def __init__(self, folder: Path, count: int) -> None:
        self.out, self.rng = folder / "run", random.Random(0)
        self.prompts = {i.id: i.prompt for items in questions(count).values() for i in items}
        self._dataset, self._next = small_dataset(folder / "data", count), 5
        self._enough = threading.Event()

    async def received(self, server: servers.Server) -> None:
        if len(server.received) >= self._next:
            self._enough.set()
        await asyncio.sleep(self.rng.random() * 0.02)

    def go(self, server: servers.Server, kills: int, options: str = "") -> None:
        """Start the run, kill it `kills` times, and let it end."""
        command = f"run --model openai/some --dataset {self._dataset} {options}"
        for _ in range(kills):
            process = start(server, command, self.out)
            assert self._enough.wait(300)
            process.kill()
            process.communicate()
            self._next = len(server.received) + self.rng.randrange(1, 30)
            self._enough.clear()
        process = start(server, command, self.out)
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors


def test_every_request_of_a_run_that_is_killed_often_is_in_the_journal(tmp_path: Path) -> None:
    killed, kills = KilledRun(tmp_path, 200), 12
    prompts = killed.prompts
    limited = set(killed.rng.sample(list(prompts.values()), 80))

    async def script(received: ReceivedRequest) -> Reply:
        if received.number == 0 and received.prompt in limited:
            return servers.error(429, headers={"Retry-After": "0"})
        await killed.received(server)
        return servers.chat()

    with serve(script) as server:
        killed.go(server, kills)
    responses = list(iter_responses(killed.out))
    answers = Counter(response.item_id for response in responses if response.error is None)
    assert len(answers) == 400 and set(answers.values()) == {1}
    lost = Counter[str]()
    for response in responses:
        lost[prompts[response.item_id]] += response.possibly_billed_attempts
    assert lost.total() <= kills * CONCURRENCY
    # Every item has one answer; what else the server received was rejected, or is counted as lost.
    for prompt in prompts.values():
        assert server.counts[prompt] <= 1 + (prompt in limited) + lost[prompt]


def test_every_turn_is_in_the_journal_and_none_is_paid_for_twice(tmp_path: Path) -> None:
    """What the server answered is stored, or counted as possibly billed."""
    killed, kills = KilledRun(tmp_path, 100), 30

    async def script(received: ReceivedRequest) -> Reply:
        await killed.received(server)
        if turn_of(received) < TURNS - 1:
            return await calling(received, expression(f"1 + {turn_of(received)}"))
        return await answering(received)

    with serve(script) as server:
        killed.go(server, kills, "--tools calculator")
    served = Counter((each.prompt, turn_of(each)) for each in server.received)
    lines, prompts = list(iter_responses(killed.out)), killed.prompts
    stored = Counter((prompts[each.item_id], each.turn) for each in lines if each.error is None)
    lost = Counter[tuple[str, int]]()
    for each in lines:
        lost[prompts[each.item_id], each.turn] += each.possibly_billed_attempts
    assert len(stored) == 200 * TURNS and set(stored.values()) == {1}
    # A request that was logged but not yet sent when the process died counts as lost, too.
    assert 0 < lost.total() <= kills * CONCURRENCY
    assert all(served[turn] <= stored[turn] + lost[turn] for turn in served)
    whole = read_run(killed.out).responses.values()
    assert {len(each.turns) for each in whole} == {TURNS - 1}
    assert {each.usage.generated for each in whole} == {4 * TURNS}


KILLS = 50
TASKS = ("long_addition", "long_division", "long_max", "long_sorting", "chain", "copy")
SPEC = {"precision": 0.12, "max_items": 150, "max_size": 64}


def test_a_measurement_that_is_killed_50_times_is_that_of_an_uninterrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve(model) as server:
        measure(server, tmp_path / "whole", **SPEC, tasks=TASKS)
    items = sum(map(len, read_outcomes(tmp_path / "whole").values()))
    longest = items // KILLS
    assert longest > 5
    server = kill_often(tmp_path / "run", KILLS, longest, random.Random(0), SPEC, TASKS)
    assert len({received.headers["host"] for received in server.received}) == 1
    assert_nothing_was_asked_twice(server, tmp_path / "run")
    assert_same_measurement(tmp_path / "run", tmp_path / "whole")
