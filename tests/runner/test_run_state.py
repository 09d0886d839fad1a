"""What the journal of a run says, read once, and the memory that this takes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from numbench import jsonl
from numbench.journal import RESPONSES
from numbench.records import Completion, Failure
from numbench.runner.resolution import describe, resolve
from numbench.runner.run_context import make_response
from numbench.runner.run_state import read_state
from numbench.runner.spec import RunSpec
from tests.runner.test_run import small_dataset


def test_texts_are_not_in_memory_at_once(tmp_path: Path) -> None:
    """The first request also has a lost attempt, which replaces no answer but was paid for."""
    data = small_dataset(tmp_path / "data", 200)
    spec = RunSpec("openai/some", dataset=data, base_url="http://127.0.0.1:1", out=tmp_path / "run")
    run = resolve(spec, describe(spec))
    requests = {each.id: each for of_task in run.requests_by_task.values() for each in of_task}
    first = next(iter(requests.values()))
    answer = Completion(text="1", reasoning_text="x" * 100_000, cost=0.5)
    lost = Completion(error=Failure(kind="transient", message="lost"), cost=0.25)
    run.folder.mkdir()
    with (run.folder / RESPONSES).open("wb") as file:
        for requested in requests.values():
            file.write(jsonl.encode(make_response(requested, answer, 1)))
        file.write(jsonl.encode(make_response(first, lost, 1)))
    assert (run.folder / RESPONSES).stat().st_size > 40e6
    tracemalloc.start()
    state = read_state(run, None)
    stats = state.statistics(requests.values(), [], None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(state.outcomes.values()) == {None} and state.spent == pytest.approx(200.25)
    assert stats.progress().overall.cost == pytest.approx(200.25)
    assert (stats.progress().done, stats.progress().overall.errors) == (400, 0)
    assert peak < 5e6
