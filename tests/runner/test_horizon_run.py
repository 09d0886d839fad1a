"""Horizon measurements against a scripted server: rounds, resuming, limits and failures."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.horizon import Limits
from numbench.horizon.items import ItemSequences, parse_id
from numbench.horizon.measurement import TaskMeasurement
from numbench.horizon.sizes import task_sizes
from numbench.journal.repair import verify_run
from numbench.journal.run_folder import iter_responses, read_info
from numbench.reporting.read import read_report_data
from numbench.reporting.warnings import report_warnings
from numbench.runner.active_run import CostLimitReached
from numbench.runner.progress import RunProgress
from numbench.scoring import score_run
from numbench.scoring.horizon_outcomes import read_horizons, read_measurements
from numbench.tasks import SCALED_TASKS
from tests.horizon.scripted_model import reply, size_of
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.horizon_runs import (
    PREFIX,
    TASKS,
    assert_same_measurement,
    measure,
    model,
    read_outcomes,
    rounds,
)
from tests.support.runs import KEY
from tests.support.servers import ReceivedRequest, Reply, Script, serve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a whole measurement."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch, serve(model) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        measure(server, out)
    return out


def test_a_measurement_finds_the_horizons(uninterrupted: Path) -> None:
    horizons = read_horizons(uninterrupted)
    assert set(horizons) == set(TASKS)
    for horizon in horizons.values():
        assert horizon.stop == "precision"
        assert 4 < horizon.h50.value < 16
    info = read_info(uninterrupted)
    assert info.horizon is not None
    assert (info.horizon.precision, info.horizon.max_items) == (0.4, 60)
    assert info.horizon.largest == dict.fromkeys(TASKS, 64)
    # Every item is in a round before it is answered, and its id says its size.
    asked = [item for items in rounds(uninterrupted).values() for each in items for item in each]
    assert {response.item_id for response in iter_responses(uninterrupted)} == set(asked)
    assert len(asked) == len(set(asked))
    for task, rows in score_run(uninterrupted).rows.items():
        for row in rows:
            assert size_of(row.item.prompt) == (task, parse_id(row.item.id).size)


def test_the_order_of_the_answers_has_no_influence(uninterrupted: Path, tmp_path: Path) -> None:
    rng, seen = random.Random(1), list[RunProgress]()

    async def slow(received: ReceivedRequest) -> Reply:
        for _ in range(rng.randrange(5)):
            await servers.asyncio.sleep(0)
        return reply(received, 9.0)

    with serve(slow) as server:
        measure(server, tmp_path / "run", concurrency=3, on_progress=seen.append)
        assert server.most_in_flight <= 3
        assert max(server.counts.values()) == 1
    assert_same_measurement(tmp_path / "run", uninterrupted)
    assert seen[-1].complete == len(TASKS)
    assert all("[" in estimate for estimate in seen[-1].horizons.values())


def test_a_complete_measurement_asks_nothing_more(uninterrupted: Path) -> None:
    with serve(model) as server:
        # Another port is another server.
        url = read_info(uninterrupted).settings["base_url"]
        report = measure(server, uninterrupted, base_url=url)
        assert not server.received
    assert (report.completed, report.errors) == (0, 0)
    assert report.skipped == sum(map(len, read_outcomes(uninterrupted).values()))


def test_answers_of_a_damaged_round_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(model) as server:
        measure(server, out, tasks=("copy",))
        before = read_outcomes(out)["copy"]
        lines = (out / "rounds.jsonl").read_bytes().splitlines(keepends=True)
        lines[1] = lines[1][:20] + b"\n"
        (out / "rounds.jsonl").write_bytes(b"".join(lines))
        with pytest.raises(BadInput, match=r"rounds.jsonl, line 2: .*numbench verify .* --repair"):
            measure(server, out, tasks=("copy",))
        assert len(verify_run(out, repair=True).damage) == 1
        measure(server, out, tasks=("copy",))
        assert max(server.counts.values()) == 1
    after = read_outcomes(out)["copy"]
    assert Counter(before) <= Counter(after)


def test_more_items_and_more_precision_continue_a_measurement(tmp_path: Path) -> None:
    fine = {"precision": 0.2, "max_items": 50}
    with serve(model) as server:
        measure(server, tmp_path / "steps", max_items=7)
        assert {len(each) for each in read_outcomes(tmp_path / "steps").values()} == {7}
        measure(server, tmp_path / "steps", max_items=30)
        measure(server, tmp_path / "steps", **fine)
        assert max(server.counts.values()) == 1
        measure(server, tmp_path / "once", **fine)
    assert_same_measurement(tmp_path / "steps", tmp_path / "once")
    info = read_info(tmp_path / "steps").horizon
    assert info is not None and (info.precision, info.max_items) == (0.2, 50)


@each_row(__file__, "refused_measurements")
def test_another_measurement_is_refused(
    uninterrupted: Path, changes: dict[str, Any], message: str
) -> None:
    before = {path: path.read_bytes() for path in uninterrupted.glob("*.json*")}
    with serve(model) as server:
        url = read_info(uninterrupted).settings["base_url"]
        with pytest.raises(BadInput, match=message):
            measure(server, uninterrupted, **({"base_url": url} | changes))
    assert {path: path.read_bytes() for path in uninterrupted.glob("*.json*")} == before


def failing(first_failures: set[str], status: int) -> Script:
    """Return a model that refuses the first requests of some prompts; others are added to them."""

    async def script(received: ReceivedRequest) -> Reply:
        if received.prompt in first_failures:
            return servers.error(status)
        return reply(received, 9.0)

    return script


def test_a_temporary_failure_keeps_its_round_open_until_the_next_call(
    uninterrupted: Path, tmp_path: Path
) -> None:
    first_rounds = {task: each[1] for task, each in rounds(uninterrupted).items()}
    prompts = {row.item.id: row.item.prompt for row in score_run(uninterrupted).rows["copy"]}
    failures = {prompts[first_rounds["copy"][2]]}
    with serve(failing(failures, 503)) as server:
        report = measure(server, tmp_path / "run", policy={"max_attempts": 2})
        assert (report.errors, report.permanent_errors) == (1, 0)
        begun = rounds(tmp_path / "run")
        assert begun["copy"] == rounds(uninterrupted)["copy"][:2]
        assert begun["long_addition"] == rounds(uninterrupted)["long_addition"]
        failures.clear()
        measure(server, tmp_path / "run")
    assert_same_measurement(tmp_path / "run", uninterrupted)


def test_sizes_that_the_server_rejects_are_left_out(tmp_path: Path) -> None:
    async def short_context(received: ReceivedRequest) -> Reply:
        too_long = size_of(received.prompt)[1] > 20
        return servers.error(400, "the prompt is too long") if too_long else reply(received, 1e9)

    with serve(short_context) as server:
        report = measure(server, tmp_path / "run", tasks=("copy",), max_items=200)
        assert 0 < report.permanent_errors < 40 and report.answered < 100
    measured = read_measurements(tmp_path / "run")["copy"]
    assert max(outcome.size for outcome in measured.answered) <= 20
    assert measured.design.completed - len(measured.answered) == report.permanent_errors
    horizon = read_horizons(tmp_path / "run")["copy"]
    assert horizon.h50.low > 12 and horizon.stop == "exhausted"
    assert horizon.text(horizon.h50.value) == "≥ 19"


def test_a_model_may_reject_all_questions_of_some_tasks(tmp_path: Path) -> None:
    rejected, many_rejected = 0, asyncio.Event()

    async def calculator(received: ReceivedRequest) -> Reply:
        nonlocal rejected
        if size_of(received.prompt)[0] == "long_addition":
            await many_rejected.wait()
            return reply(received, 9.0)
        rejected += 1
        if rejected > 30:
            many_rejected.set()
        return servers.error(400, "the prompt is too long")

    refused = ("long_subtraction", "long_comparison", "long_sum", "chain", "nested", "copy")
    with serve(calculator) as server:
        report = measure(server, tmp_path / "run", tasks=("long_addition", *refused), max_items=20)
    assert report.answered == 20
    horizons = read_horizons(tmp_path / "run")
    assert (horizons["copy"].items, horizons["copy"].stop) == (0, "exhausted")
    assert horizons["long_addition"].items == 20
    warnings = report_warnings(read_report_data([tmp_path / "run"]))
    assert any("no question of " in text for texts in warnings.values() for text in texts)


def test_a_cost_limit_stops_a_measurement_that_continues_later(
    uninterrupted: Path, tmp_path: Path
) -> None:
    async def paid(received: ReceivedRequest) -> Reply:
        answer = reply(received, 9.0)
        assert isinstance(answer, servers.web.Response) and answer.text is not None
        body = servers.json.loads(answer.text)
        body["usage"]["cost"] = 0.01
        return servers.web.json_response(body)

    # One request at a time: the last of each round is the only one that is begun.
    routed: dict[str, Any] = {"model": "openrouter/a/b", "tasks": ("copy",), "concurrency": 1}
    with serve(paid) as server:
        with pytest.raises(CostLimitReached, match="stopped before exceeding --max-cost"):
            measure(server, tmp_path / "run", **routed, max_cost=0.105)
        assert 4 < len(server.received) <= 10
        measure(server, tmp_path / "run", **routed, max_cost=50.0)
        assert max(server.counts.values()) == 1
    assert rounds(tmp_path / "run")["copy"] == rounds(uninterrupted)["copy"]


def test_answers_that_are_cut_off_count_as_truncated(tmp_path: Path) -> None:
    async def limited(received: ReceivedRequest) -> Reply:
        if size_of(received.prompt)[1] > 10:
            return servers.chat('{"answer": 12', finish="length", usage={"completion_tokens": 25})
        return reply(received, 1e9)

    with serve(limited) as server:
        measure(server, tmp_path / "run", tasks=("copy",), max_tokens=25)
        # The answer to a question of 46 digits has at least 25 tokens, so that it is not asked.
        assert max(size_of(received.prompt)[1] for received in server.received) <= 45
    info = read_info(tmp_path / "run").horizon
    assert info is not None and info.largest["copy"] <= 45
    horizon = read_horizons(tmp_path / "run")["copy"]
    assert horizon.truncated > 3 and horizon.h50.low < 10.5 < horizon.h50.high * 1.1


def test_samples_of_an_item_count_with_their_share(tmp_path: Path) -> None:
    with serve(lambda received: reply(received, 1e9 if received.number % 2 else 1e-9)) as server:
        report = measure(
            server, tmp_path / "run", tasks=("copy",), samples=2, temperature=1.0, max_items=6
        )
        assert set(server.counts.values()) == {2}
    assert report.answered == 12
    outcomes = read_outcomes(tmp_path / "run")["copy"]
    assert [(outcome.right, outcome.total) for outcome in outcomes] == [(0.5, 2)] * 6
    # The second round is that of a measurement whose first four items are half right.
    first, second = rounds(tmp_path / "run")["copy"]
    copy = SCALED_TASKS["copy"]
    expected = TaskMeasurement(copy, task_sizes(copy, 64), ItemSequences(), Limits(), PREFIX)
    expected.add_round(first)
    for item_id, outcome in zip(first, outcomes, strict=False):
        expected.record(item_id, outcome)
    assert expected.next_round() == second
