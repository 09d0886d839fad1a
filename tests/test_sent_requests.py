"""The log of sent requests: what a killed process left in flight is counted, and nothing else."""

import asyncio
from pathlib import Path

import pytest

from numbench.errors import NumbenchError
from numbench.journal.repair import verify_run
from numbench.journal.run_folder import SENT, iter_responses, lost_requests
from numbench.journal.writer import Journal
from numbench.records import ItemSample, Response
from numbench.tasks.items import make_item
from tests.support.runs import INFO

ITEMS = [make_item("mean", "mean", (str(n), "1"), {}) for n in range(4)]


def call(folder: Path, sent: dict[int, int], stored: list[int], free: list[int]) -> None:
    """A call that sends, stores and gets free failures, and then is killed."""

    async def work(journal: Journal) -> None:
        for number, attempts in sent.items():
            for _ in range(attempts):
                journal.record_sent(ItemSample(ITEMS[number], sample=number))
        for number in free:
            journal.record_unbilled(ItemSample(ITEMS[number], sample=number))
        for number in stored:
            text = "x" * number
            await journal.append(Response(item_id=ITEMS[number].id, sample=number, text=text))

    journal = Journal(folder, INFO, max_in_flight=4)
    asyncio.run(work(journal))
    log = (folder / SENT).read_bytes()
    journal.close()
    (folder / SENT).write_bytes(log)


def lost(folder: Path) -> dict[int, int]:
    """The attempts in the journal that may be billed, by the number of the item."""
    ids = [item.id for item in ITEMS]
    return {
        ids.index(response.item_id): response.possibly_billed_attempts
        for response in iter_responses(folder)
        if response.error is not None
    }


def test_requests_without_a_response_are_stored_once_as_possibly_billed(tmp_path: Path) -> None:
    call(tmp_path, sent={0: 1, 1: 2, 2: 1, 3: 2}, stored=[0], free=[2, 3])
    for expected in (3, 0):
        with Journal(tmp_path, INFO) as journal:
            assert journal.lost_attempts == expected
        assert lost(tmp_path) == {1: 2, 3: 1}
        samples = [r.sample for r in iter_responses(tmp_path) if r.error is not None]
        assert samples == [1, 3]


def test_a_response_of_an_earlier_call_does_not_settle_a_request(tmp_path: Path) -> None:
    call(tmp_path, sent={0: 1}, stored=[0], free=[])
    call(tmp_path, sent={0: 1, 1: 1}, stored=[1], free=[])
    with Journal(tmp_path, INFO) as journal:
        assert journal.lost_attempts == 1
    assert lost(tmp_path) == {0: 1}


def test_a_log_that_was_cut_anywhere_loses_nothing_before_the_cut(tmp_path: Path) -> None:
    call(tmp_path, sent={0: 1, 1: 1, 2: 1}, stored=[1], free=[])
    whole = (tmp_path / SENT).read_bytes()
    for cut in range(len(whole) + 1):
        (tmp_path / SENT).write_bytes(whole[:cut])
        found = lost_requests(tmp_path)
        sent = [line for line in whole[:cut].split(b"\n")[1:] if line.endswith(b"}")]
        assert [r.item_id for r in found] == [ITEMS[n].id for n in (0, 2)[: (len(sent) + 1) // 2]]


def test_a_repair_of_the_responses_stores_what_was_in_flight(tmp_path: Path) -> None:
    call(tmp_path, sent={0: 1, 1: 1}, stored=[0, 1], free=[])
    call(tmp_path, sent={0: 1, 1: 1, 2: 1, 3: 1}, stored=[2, 3], free=[])
    path = tmp_path / "responses.jsonl"
    first, second, third, fourth = path.read_bytes().splitlines(keepends=True)
    second = second.replace(b'"at":null', b'"at":"2025-01-01"')
    path.write_bytes(first[:40] + b"\n" + second + third + b"\0" * 40 + fourth)
    assert verify_run(tmp_path, repair=True).responses == 3
    assert (lost(tmp_path), lost_requests(tmp_path)) == ({0: 1, 1: 1}, [])


def test_the_log_of_a_call_that_could_not_store_everything_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(journal: Journal) -> None:
        journal.record_sent(ItemSample(ITEMS[0]))
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", refuse)
            with pytest.raises(NumbenchError):
                await journal.append(Response(item_id=ITEMS[0].id))

    def refuse(file: int) -> None:
        raise OSError(5, "Input/output error")

    with Journal(tmp_path, INFO, max_in_flight=1) as journal:
        asyncio.run(work(journal))
    with Journal(tmp_path, INFO) as journal:
        assert journal.lost_attempts == 1
    assert lost(tmp_path) == {0: 1}


def test_without_space_for_the_log_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with Journal(tmp_path, INFO, max_in_flight=1) as journal, monkeypatch.context() as patch:
        patch.setattr("os.write", refuse)
        with pytest.raises(NumbenchError, match="No space left on device; all answers are saved"):
            journal.record_sent(ItemSample(ITEMS[0]))
