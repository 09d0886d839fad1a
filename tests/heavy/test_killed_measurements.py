"""Horizon measurements that are killed at random moments."""

import random
from pathlib import Path

import pytest

from tests.support.horizon_runs import (
    assert_nothing_was_asked_twice,
    assert_same_measurement,
    kill_often,
    measure,
    model,
    read_outcomes,
)
from tests.support.runs import KEY
from tests.support.servers import serve

pytestmark = pytest.mark.heavy
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
