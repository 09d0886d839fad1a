"""The journal: nothing acknowledged is lost, one writer at a time, runs can be resumed."""

import asyncio
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, to_builtins
from msgspec.structs import replace

from numbench.core import jsonl
from numbench.errors import BadInput, NumbenchError
from numbench.journal.run_folder import find_runs, iter_responses, read_run, write_run
from numbench.journal.writer import Journal
from numbench.records import Failure, Response, RunInfo
from tests.support.case_tables import each_row
from tests.support.runs import INFO

FAILURE = Failure(kind="transient", message="gone")


def answer(number: int, text: str = "x") -> Response:
    return Response(item_id=f"mean-{number}", text=text)


def append(folder: Path, *responses: Response, info: RunInfo = INFO) -> None:
    async def all_at_once(journal: Journal) -> None:
        await asyncio.gather(*(journal.append(response) for response in responses))

    with Journal(folder, info) as journal:
        asyncio.run(all_at_once(journal))


def test_a_long_incomplete_last_line_is_removed(tmp_path: Path) -> None:
    append(tmp_path, answer(1))
    path = tmp_path / "responses.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + jsonl.encode(answer(2, "7" * 300_000))[:-3])
    append(tmp_path)
    assert path.read_bytes() == whole
    path.write_bytes(jsonl.encode(answer(2, "7" * 300_000))[:-3])
    append(tmp_path)
    assert path.read_bytes() == b""


def test_an_error_never_replaces_an_answer(tmp_path: Path) -> None:
    lost = Response(item_id="mean-1", error=FAILURE)
    append(tmp_path, lost, answer(1, "first"), lost)
    assert read_run(tmp_path).responses["mean-1"].text == "first"
    with Journal(tmp_path, INFO) as journal:
        assert read_run(tmp_path).responses["mean-1"].text == "first"
        asyncio.run(journal.append(answer(1, "second")))
        assert read_run(tmp_path).responses["mean-1"].text == "second"
    assert read_run(tmp_path).responses["mean-1"].text == "second"


def test_a_last_line_that_was_cut_is_repaired_and_nothing_else_is_lost(tmp_path: Path) -> None:
    append(tmp_path, answer(1), answer(2, "ü€ \n"))
    path = tmp_path / "responses.jsonl"
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for cut in (*range(start, len(whole) - 3, 9), *range(len(whole) - 3, len(whole))):
        path.write_bytes(whole[:cut])
        complete = cut == len(whole) - 1
        expected_ids = ["mean-1", "mean-2"] if complete else ["mean-1"]
        assert list(read_run(tmp_path).responses) == expected_ids, cut
        with Journal(tmp_path, INFO) as journal:
            assert list(read_run(tmp_path).responses) == expected_ids, cut
            asyncio.run(journal.append(answer(3)))
        expected = (whole if complete else whole[:start]) + jsonl.encode(answer(3))
        assert path.read_bytes() == expected, cut


OPEN = """
import asyncio, itertools, os, sys
from pathlib import Path
from numbench.core.jsonl import read_json
from numbench.journal.writer import Journal
from numbench.records import Response, RunInfo
journal = Journal(Path(sys.argv[1]), read_json(Path(sys.argv[2]), RunInfo))
"""

APPEND = """
async def go():
    numbers = itertools.count()
    async def work():
        for n in numbers:
            await journal.append(Response(item_id=f"mean-{n}", text="x" * 5000))
            os.write(1, b"%d\\n" % n)
    await asyncio.gather(*(work() for _ in range(8)))
with journal:
    asyncio.run(go())
"""


@pytest.fixture
def info_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("info") / "info.json"
    jsonl.write_json(path, INFO)
    return path


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path, info_file: Path) -> None:
    acknowledged_count = 0
    for _ in range(3):
        command = [sys.executable, "-c", OPEN + APPEND, tmp_path, info_file]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            acknowledged = [process.stdout.readline()]
            acknowledged += [process.stdout.readline() for _ in range(20)]
            process.send_signal(signal.SIGKILL)
            acknowledged += process.stdout.readlines()
        with Journal(tmp_path, INFO):
            responses = read_run(tmp_path).responses
        for line in acknowledged:
            if line.endswith(b"\n"):
                acknowledged_count += 1
                assert f"mean-{int(line)}" in responses
        data = (tmp_path / "responses.jsonl").read_bytes()
        assert data.endswith(b"\n")
    assert acknowledged_count > 30


def test_lines_that_arrive_during_a_sync_share_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = 0
    all_waiting = threading.Event()
    fsync = os.fsync

    def count(file: int) -> None:
        nonlocal syncs
        syncs += 1
        assert all_waiting.wait(60)
        fsync(file)

    with Journal(tmp_path, INFO) as journal:
        monkeypatch.setattr(os, "fsync", count)

        async def many() -> None:
            writes = [asyncio.create_task(journal.append(answer(n))) for n in range(1000)]
            await asyncio.sleep(0)
            all_waiting.set()
            await asyncio.gather(*writes)

        asyncio.run(many())
        assert 1 <= syncs <= 2
    assert len(read_run(tmp_path).responses) == 1000


def test_an_event_loop_that_ends_during_a_sync_loses_no_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing, ended = threading.Event(), threading.Event()
    fsync = os.fsync

    def wait_for_the_end(file: int) -> None:
        syncing.set()
        assert ended.wait(60)
        fsync(file)

    async def leave(journal: Journal) -> None:
        first = asyncio.create_task(journal.append(answer(1)))
        assert await asyncio.to_thread(syncing.wait, 60)
        second = asyncio.create_task(journal.append(answer(2)))
        await asyncio.sleep(0)
        assert not first.done() and not second.done()

    with Journal(tmp_path, INFO) as journal:
        monkeypatch.setattr(os, "fsync", wait_for_the_end)
        asyncio.run(leave(journal))
        ended.set()
    assert list(read_run(tmp_path).responses) == ["mean-1", "mean-2"]


@each_row(__file__, "unequal_infos")
def test_a_folder_of_another_run_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    append(tmp_path, answer(1))
    fields: dict[str, Any] = to_builtins(INFO)
    for name, value in change.items():
        fields[name] = fields[name] | value if isinstance(value, dict) else value
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(BadInput, match="choose another --out") as caught:
        Journal(tmp_path, convert(fields, RunInfo))
    assert message in str(caught.value)
    assert "a" * 64 not in str(caught.value)
    assert (tmp_path / "run.json").read_bytes() == before


def test_only_another_host_or_port_of_an_own_server_is_the_same_run(tmp_path: Path) -> None:
    def on(url: str) -> RunInfo:
        return replace(INFO, settings=INFO.settings | {"base_url": url})

    append(tmp_path, answer(1), info=on("http://a/v1/"))
    append(tmp_path, answer(2), info=on("http://a/v1"))
    for url in ("https://a/v1", "http://a/v2", "https://b/v1"):
        with pytest.raises(BadInput, match=r"change it in .*run\.json if the server moved, or"):
            Journal(tmp_path, on(url))
    for number, url in enumerate(("http://b:8001/v1", "http://b:8001/v1", "http://c/v1"), 3):
        append(tmp_path, answer(number), info=on(url))
    run = read_run(tmp_path)
    assert len(run.responses) == 5 and run.info.settings["base_url"] == "http://c/v1"
    assert run.served.warnings[0] == (
        "the server moved during the run: http://a/v1, http://b:8001/v1, http://c/v1"
    )


def test_tasks_and_limit_may_grow_and_never_shrink(tmp_path: Path) -> None:
    append(tmp_path, answer(1))
    more = replace(INFO, tasks=("std", "mean"), created="later", versions={"numbench": "0.2.0"})
    append(tmp_path, info=more)
    info = read_run(tmp_path).info
    assert info.tasks == ("mean", "std")
    assert info.created == INFO.created
    assert info.versions == {"numbench": "0.1.0, 0.2.0"}
    append(tmp_path, info=replace(more, limit=None))
    append(tmp_path, info=INFO)
    info = read_run(tmp_path).info
    assert (info.tasks, info.limit) == (("mean", "std"), None)
    assert info.versions == {"numbench": "0.1.0, 0.2.0"}


HOLD = """
with journal:
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_deleted_lock_lets_no_other_process_in(tmp_path: Path, info_file: Path) -> None:
    command = [sys.executable, "-c", OPEN + HOLD, tmp_path, info_file]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as writer:  # type: ignore[call-overload]
        assert writer.stdout.readline() == b"open\n"
        (tmp_path / ".lock").unlink()
        before = (tmp_path / "run.json").read_bytes()
        with pytest.raises(BadInput, match="another process is writing this run"):
            Journal(tmp_path, replace(INFO, limit=None))
        with pytest.raises(BadInput, match="another process is writing this run"):
            write_run(tmp_path, replace(INFO, source="imported"), [])
        assert (tmp_path / "run.json").read_bytes() == before
        writer.communicate(b"")
    append(tmp_path, answer(1))


@pytest.mark.parametrize("change", ["copied", "deleted", "moved", "emptied copy"])
def test_a_file_that_another_program_replaces_loses_no_answer(tmp_path: Path, change: str) -> None:
    path, other = tmp_path / "responses.jsonl", tmp_path / "copy"

    async def work(journal: Journal) -> None:
        await journal.append(answer(1))
        await journal.append(answer(2))
        other.write_bytes(b"" if change == "emptied copy" else path.read_bytes())
        if change in ("copied", "emptied copy"):
            other.rename(path)
        elif change == "deleted":
            path.unlink()
        else:
            path.rename(tmp_path / "elsewhere")
        await journal.append(answer(3))
        await journal.append(answer(4))

    with Journal(tmp_path, INFO) as journal:
        asyncio.run(work(journal))
    assert [each.item_id for each in iter_responses(tmp_path)] == [f"mean-{n}" for n in range(1, 5)]


@pytest.mark.parametrize("change", ["emptied", "folder moved"])
def test_what_cannot_be_mended_ends_the_run_and_keeps_what_arrives(
    tmp_path: Path, change: str
) -> None:
    folder = tmp_path / "run"

    async def work(journal: Journal) -> None:
        await journal.append(answer(1))
        if change == "emptied":
            (folder / "responses.jsonl").write_bytes(b"")
        else:
            folder.rename(tmp_path / "moved")
        with pytest.raises(NumbenchError, match="run"):
            await journal.append(answer(2))

    with Journal(folder, INFO) as journal:
        asyncio.run(work(journal))
        assert journal.failed
    left = folder if change == "emptied" else tmp_path / "moved"
    assert [each.item_id for each in iter_responses(left)][-1] == "mean-2"


def test_a_folder_with_other_files_is_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for write in (
        lambda: Journal(tmp_path, INFO),
        lambda: write_run(tmp_path, replace(INFO, source="imported"), []),
    ):
        with pytest.raises(BadInput, match=r"other files \(notes.txt\); choose another --out"):
            write()
    assert {path.name for path in tmp_path.iterdir()} <= {"notes.txt", ".lock"}
    append(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    append(tmp_path / "run", answer(1))


@pytest.mark.parametrize("name", ["run.json", "responses.jsonl"])
def test_records_of_a_newer_version_are_refused(tmp_path: Path, name: str) -> None:
    append(tmp_path, answer(1))
    path = tmp_path / name
    path.write_text(re.sub(r'("schema": ?)1', r"\g<1>99", path.read_text()))
    with pytest.raises(BadInput, match=rf"{name}.*written by a newer version of numbench"):
        read_run(tmp_path)


def test_responses_without_a_run_description_and_files_are_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "responses.jsonl").write_bytes(jsonl.encode(answer(1)))
    with pytest.raises(BadInput, match=r"without run\.json"):
        Journal(tmp_path, INFO)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file"):
        Journal(tmp_path / "file", INFO)


def test_an_import_never_replaces_a_measured_run(tmp_path: Path) -> None:
    imported = replace(INFO, source="imported")
    write_run(tmp_path / "a", imported, [answer(1)])
    write_run(tmp_path / "a", imported, [answer(2)])
    assert list(read_run(tmp_path / "a").responses) == ["mean-2"]
    append(tmp_path / "b", answer(1))
    with pytest.raises(BadInput, match="measured run"):
        write_run(tmp_path / "b", imported, [answer(2)])
    assert list(read_run(tmp_path / "b").responses) == ["mean-1"]


def test_runs_are_found_at_and_below_a_path(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "x" / "two"
    append(two)
    append(one)
    assert find_runs([tmp_path]) == [one, two]
    assert find_runs([two, tmp_path, two / ".." / "two"]) == [two, one]
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no run here"):
        find_runs([tmp_path / "empty"])
    with pytest.raises(BadInput, match="absent does not exist"):
        find_runs([tmp_path / "absent"])
    assert find_runs([one / "run.json"]) == [one]
    with pytest.raises(BadInput, match=r"run\.json is missing"):
        read_run(tmp_path / "empty")


def test_the_folder_is_synced_after_a_file_in_it_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, rename = os.fsync, os.replace

    def record_sync(file: int) -> None:
        order.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        sync(file)

    def record_rename(source: str, target: Path) -> None:
        order.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_rename)
    jsonl.write_atomically(tmp_path / "x", b"1")
    assert order == ["file", "rename", "folder"]
