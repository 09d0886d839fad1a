"""The responses on disk: what they mean for the next call, and the memory that this takes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from numbench import jsonl
from numbench.journal import RESPONSES
from numbench.records import Completion, Failure, ItemSample
from numbench.runner.run_context import make_response
from numbench.runner.stored_responses import earlier_statistics, read_stored
from tests.runner.test_run import questions


def test_texts_are_not_in_memory_at_once(tmp_path: Path) -> None:
    requests = {item.id: ItemSample(item) for items in questions(200).values() for item in items}
    first = next(iter(requests.values()))
    answer = Completion(text="1", reasoning_text="x" * 100_000, cost=0.5)
    lost = Completion(error=Failure(kind="transient", message="lost"), cost=0.25)
    with (tmp_path / RESPONSES).open("wb") as file:
        for requested in requests.values():
            file.write(jsonl.encode(make_response(requested, answer, 1)))
        file.write(jsonl.encode(make_response(first, lost, 1)))
    assert (tmp_path / RESPONSES).stat().st_size > 40e6
    tracemalloc.start()
    stored = read_stored(tmp_path, requests)
    stats = earlier_statistics(requests, [], tmp_path, stored.repeated, lambda each: each, None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stored.repeated == {first.id} and set(stored.outcomes.values()) == {None}
    assert stats.progress().overall.cost == pytest.approx(0.5 * 400 + 0.25)
    assert stats.progress().done == 400
    assert peak < 5e6
