"""Runs on shards of a dataset, and the run that they are merged into."""

import math
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import numbench as nb
from numbench.core import jsonl
from numbench.errors import BadInput
from numbench.journal.merge import merge_runs
from numbench.journal.run_folder import (
    SENT,
    find_runs,
    iter_responses,
    read_jobs,
    read_run,
    write_run,
)
from numbench.journal.writer import Journal
from numbench.records import Failure, ItemSample, ItemShard, Job, Response, Usage, parse_shard
from numbench.reporting.data import ReportData
from numbench.reporting.warnings import report_warnings
from numbench.runner.planning import plan
from numbench.runner.prepare import describe, resolve
from numbench.runner.spec import RunSpec
from numbench.scoring import score_run, signature
from tests.runner.batch_provider import Provider
from tests.support.case_tables import each_row
from tests.support.command_line import Call
from tests.support.run_fixtures import dataset, keys
from tests.support.runs import MODEL, go, good, questions, small_dataset
from tests.support.servers import serve

__all__ = ["dataset", "keys"]


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 60))
def test_shards_divide_the_items_of_a_task_evenly(size: int, count: int, limit: int) -> None:
    items = questions(size)["addition"] if size else []
    shards = [ItemShard(index, count) for index in range(1, count + 1)]
    parts = [shard.select(items) for shard in shards]
    assert sorted(item.id for part in parts for item in part) == sorted(item.id for item in items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    # A run whose limit is raised keeps its items.
    for shard, part in zip(shards, parts, strict=True):
        limited = shard.select(items[:limit])
        assert list(part[: len(limited)]) == list(limited)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "1", "a/b", "1/2/3", "-1/2", "1.5/2", ""])
def test_a_malformed_shard_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"give i/n with i from 1 to n, for example 2/8"):
        parse_shard(text)


def test_one_shard_of_one_is_the_whole_run() -> None:
    assert parse_shard("1/1") is None
    assert plan(RunSpec(MODEL, shard="1/1")).path == plan(RunSpec(MODEL)).path


def test_shards_of_a_run_share_its_requests_and_make_up_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_dataset(tmp_path / "data", 7)
    sampled: dict[str, Any] = {"samples": 2, "temperature": 0.7, "seed": 3, "few_shot": 2}
    folders = [tmp_path / f"run-{index}" for index in (1, 2, 3)]
    with serve(good) as server:
        for index, folder in enumerate(folders, 1):
            report = go(server, data, folder, shard=f"{index}/3", **sampled)
            assert (report.cost, report.errors) == (0.5 * report.answered, 0)
        whole = tmp_path / "whole"
        assert {received.body["seed"] for received in server.received} == {3, 4}
        requests = [(r.prompt, r.body["seed"]) for r in server.received]
        assert len(requests) == len(set(requests)) == 28
        go(server, data, whole, **sampled)
        merged = merge_runs(folders[::-1], tmp_path / "merged")
        assert (merged.requests, merged.missing) == (28, 0)
        # The merged run is that without shards: the same command finds nothing to do.
        again = go(server, data, tmp_path / "merged", **sampled)
        assert (again.completed, again.skipped) == (0, 28)
        assert len(server.received) == 2 * 28
    one, other = (read_run(path) for path in (whole, tmp_path / "merged"))
    assert replace(one.info, created="") == replace(other.info, created="")
    assert {k: replace(r, at=None, latency=None) for k, r in one.responses.items()} == {
        k: replace(r, at=None, latency=None) for k, r in other.responses.items()
    }
    assert {task.change for task in nb.compare(whole, tmp_path / "merged").tasks} == {0}
    scores = [nb.load_scores([path]).exact_match.tolist() for path in (whole, tmp_path / "merged")]
    assert scores[0] == scores[1]
    beside = ReportData([score_run(path) for path in (folders[0], tmp_path / "merged")])
    shown = str(report_warnings(beside))
    assert "run-1): its questions are also in " in shown and "merged); name only one" in shown


def test_a_shard_is_part_of_the_identity_the_name_and_every_signature(
    dataset: Path, tmp_path: Path
) -> None:
    path = plan(RunSpec(MODEL, dataset=dataset, shard="2/3")).path
    assert path.name == "openai-some_default_small_shard-2-of-3"
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, shard="2/3")
        for shard in (None, "1/3", "2/4"):
            with pytest.raises(BadInput, match=r"holds a run with shard 2/3, but this one has"):
                go(server, dataset, out, shard=shard)
        assert go(server, dataset, out, shard="2/3").skipped == 4
    assert read_run(out).info.shard == ItemShard(2, 3)
    data = ReportData([score_run(out)])
    for task, cell in data.runs[0].cells.items():
        assert (cell.n, cell.statuses) == (2, {"ok": 2})
        assert "|n:2|shard:2/3|" in signature(score_run(out), task)
    assert "includes only shard 2/3" in str(report_warnings(data))


def part(folder: Path, data: Path, responses: list[Response], **changes: Any) -> Path:
    """A run folder with these responses, as a run would have written it."""
    spec = RunSpec(MODEL, dataset=data, out=folder)
    info = replace(resolve(spec, describe(spec)).info, **changes)
    write_run(folder, info, responses)
    return folder


def answer(item_id: str, sample: int = 0, **changes: Any) -> Response:
    return Response(item_id=item_id, sample=sample, text="1", **changes)


@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_merge_keeps_every_line_and_every_sum(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Runs with any items, failures, retries and unknown costs; and the sources stay untouched."""
    folder = tmp_path_factory.mktemp("merge")
    small = small_dataset(folder / "data", 6)
    ids = [item.id for items in questions(6).values() for item in items]
    owner = {i: data.draw(st.sampled_from([0, 1, 2, None]), label=i) for i in ids}
    costs = st.none() | st.floats(0, 10)
    lines: list[list[Response]] = [[], [], []]
    for item_id, index in owner.items():
        for _ in range(data.draw(st.integers(1, 3)) if index is not None else 0):
            error = data.draw(st.sampled_from([None, Failure(kind="transient", message="x")]))
            usage = Usage(generated=data.draw(st.none() | st.integers(0, 1000)))
            lines[index].append(  # type: ignore[index]
                answer(item_id, cost=data.draw(costs), usage=usage, error=error)
            )
    sources = [part(folder / f"{n}", small, lines[n]) for n in range(3)]
    before = snapshot(*sources)
    merged = merge_runs(sources, folder / "merged")
    assert snapshot(*sources) == before
    assert list(iter_responses(folder / "merged")) == lines[0] + lines[1] + lines[2]
    answered = len({r.item_id for each in lines for r in each if r.error is None})
    assert (merged.requests, merged.missing) == (12, 12 - answered)
    costs_of = [[r.cost for r in each if r.cost is not None] for each in lines]
    total = sum(r.cost for r in iter_responses(folder / "merged") if r.cost is not None)
    assert math.isclose(total, math.fsum(math.fsum(each) for each in costs_of))
    shutil.rmtree(folder)


def snapshot(*folders: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for f in folders for p in sorted(f.rglob("*")) if p.is_file()}


@pytest.fixture
def halves(dataset: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two runs, one with the additions and one with the minima."""
    first, second = ([answer(item.id) for item in items] for items in questions(5).values())
    return part(tmp_path / "a", dataset, first), part(tmp_path / "b", dataset, second)


def test_requests_that_a_killed_run_left_in_flight_are_counted_after_a_merge(
    tmp_path: Path, halves: tuple[Path, Path]
) -> None:
    first, _ = halves
    with Journal(first, read_run(first).info, max_in_flight=1) as journal:
        for _ in range(2):
            journal.record_sent(ItemSample(questions(5)["addition"][0]))
        log = (first / SENT).read_bytes()
    (first / SENT).write_bytes(log)
    merge_runs(halves, tmp_path / "merged")
    assert sum(each.possibly_billed_attempts for each in iter_responses(tmp_path / "merged")) == 2


def test_a_sample_in_two_runs_is_refused_with_both_places(
    dataset: Path, tmp_path: Path, halves: tuple[Path, Path]
) -> None:
    first, second = halves
    twice = list(iter_responses(first))[2]
    jsonl_path = second / "responses.jsonl"
    jsonl_path.write_bytes(jsonl_path.read_bytes() + jsonl.encode(twice))
    with pytest.raises(BadInput) as caught:
        merge_runs([first, second], tmp_path / "out")
    assert str(caught.value) == (
        f"{second}/responses.jsonl, line 6: sample 0 of question {twice.item_id} also has a "
        f"response in {first}/responses.jsonl; merge runs that share no questions"
    )
    assert not (tmp_path / "out").exists()
    # Another sample of the same item is another request.
    jsonl_path.write_bytes(
        b"".join(jsonl_path.read_bytes().splitlines(keepends=True)[:5])
        + jsonl.encode(replace(twice, sample=1))
    )
    assert merge_runs([first, second], tmp_path / "out").missing == 0


@each_row(__file__, "unequal_runs")
def test_runs_that_differ_are_refused(
    halves: tuple[Path, Path], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    first, second = halves
    jsonl.write_json(first / "run.json", replace(read_run(first).info, shard=ItemShard(1, 2)))
    info = read_run(second).info
    for name, value in changes.items():
        stored = getattr(info, name)
        if name == "settings":
            value = stored | value
        elif isinstance(value, dict):
            value = replace(stored or ItemShard(2, 2), **value)
        info = replace(info, **{name: value})
    jsonl.write_json(second / "run.json", info)
    with pytest.raises(BadInput, match=message):
        merge_runs([first, second], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_wrong_uses_are_refused(
    dataset: Path, halves: tuple[Path, Path], tmp_path: Path, call: Call
) -> None:
    first, second = halves
    for folders, out, message in (
        ([first, first / ".." / "a"], tmp_path / "out", "is named 2 times"),
        ([first, second], first, "has responses already; choose another --out"),
        ([first, tmp_path / "none"], tmp_path / "out", r"no run here \(run.json is missing\)"),
    ):
        with pytest.raises(BadInput, match=message):
            merge_runs(folders, out)
    foreign = part(tmp_path / "c", dataset, [answer("addition-foreign")])
    with pytest.raises(
        BadInput, match="line 1: question addition-foreign is not in the dataset small"
    ):
        merge_runs([first, foreign], tmp_path / "out")
    with Journal(second, read_run(second).info), pytest.raises(BadInput, match="another process"):
        merge_runs([first, second], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    missing = call("merge", str(first), str(tmp_path / "none"), "--out", "x")
    assert (missing.code, missing.err.count("\n")) == (2, 1)


def test_what_is_missing_after_a_merge_is_requested_by_the_command_without_a_shard(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    one, merged = tmp_path / "one", tmp_path / "merged"
    with serve(good) as server:
        go(server, dataset, one, shard="1/3")
        result = call("merge", str(one), "--out", str(merged))
        assert "4 of 10 requests have a response" in result.out
        report = go(server, dataset, merged)
        assert (report.answered, report.skipped, report.cost) == (6, 4, 3.0)
    assert merge_runs([merged], tmp_path / "whole").missing == 0


def test_batch_jobs_of_shards_are_collected_before_and_stay_known_after_a_merge(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider()
    folders = [tmp_path / f"{index}" for index in (1, 2)]
    with serve(provider) as server:
        for index, folder in enumerate(folders, 1):
            go(server, dataset, folder, shard=f"{index}/2", batch=True)
    active = Job(key="k", state="submitted", id="j", items=("x",))
    with open(folders[1] / "jobs.jsonl", "ab") as file:
        file.write(jsonl.encode(active))
    with pytest.raises(BadInput, match="answers of this run are still in progress"):
        merge_runs(folders, tmp_path / "merged")
    with open(folders[1] / "jobs.jsonl", "ab") as file:
        file.write(jsonl.encode(replace(active, state="collected")))
    assert merge_runs(folders, tmp_path / "merged").missing == 0
    jobs = [read_jobs(folder) for folder in (*folders, tmp_path / "merged")]
    assert jobs[2] == jobs[0] | jobs[1]
    assert len(jobs[2]) == 3


def test_until_a_merge_is_complete_no_run_is_at_the_destination(
    halves: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(*halves)
    for function in ("_read_responses", "store_prompts", "jsonl.write_json"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(f"numbench.journal.merge.{function}", Mock(side_effect=KeyboardInterrupt))
            merge_runs(halves, tmp_path / "merged")
        assert find_runs([tmp_path]) == sorted(halves)
    # The last one left all responses without their description.
    with pytest.raises(BadInput, match="has responses already"):
        merge_runs(halves, tmp_path / "merged")
    assert merge_runs(halves, tmp_path / "other").missing == 0
    assert snapshot(*halves) == before
