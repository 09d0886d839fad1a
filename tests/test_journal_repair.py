"""Damaged run files: what is found, what a repair keeps, and that the run continues."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.core.jsonl import encode
from numbench.errors import BadInput
from numbench.journal.repair import verify_run
from numbench.journal.run_folder import iter_responses, read_run
from numbench.journal.writer import Journal
from numbench.records import Response
from tests.support.command_line import Call
from tests.support.run_fixtures import dataset, keys
from tests.support.runs import go, good
from tests.support.servers import serve

__all__ = ["dataset", "keys"]

RECORDS = [Response(item_id=f"addition-{n}", text=f"{{n}}: {n}\\n") for n in range(6)]


def test_after_a_repair_only_the_lost_items_are_requested(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out)
        path = out / "responses.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        lost = read_run(out).responses
        lines[0] = b"\xef\xbb\xbf" + lines[0]
        lines[2] = lines[2][: len(lines[2]) // 2] + b"\n"
        lines[5:8] = [b"\0" * 40 + lines[5], lines[6].removesuffix(b"\n") + lines[7]]
        path.write_bytes(b"".join(lines))
        damaged = path.read_bytes()
        with pytest.raises(BadInput, match=r"line 1: .*numbench verify .* --repair"):
            go(server, dataset, out)
        found = call("verify", "run")
        assert found.code == 1
        assert "responses.jsonl, line 3" in found.out and "--repair" in found.out
        assert path.read_bytes() == damaged
        done = call("verify", "run", "--repair")
        assert done.code == 0, done.err
        assert "run: repaired" in done.out and "the line is lost" in done.out
        assert done.out.count("its records are kept") == 3 and "line 6 (question " in done.out
        assert (out / "responses.jsonl.damaged").read_bytes() == damaged
        assert "run: nothing to repair" in call("verify", "run", "--repair").out
        incomplete = call("verify", "run")
        assert incomplete.code == 1 and "samples have no answer" in incomplete.out
        assert go(server, dataset, out).answered == 1
        assert len(server.received) == 11
    assert read_run(out).responses.keys() == lost.keys()


@given(st.data())
def test_a_repair_keeps_every_intact_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / "run.json").write_text("{}")
    lines = [encode(record) for record in RECORDS]
    broken = data.draw(st.sets(st.integers(0, 5), max_size=4))
    for number in broken:
        cut = data.draw(st.integers(1, len(lines[number]) - 2))
        lines[number] = lines[number][:cut] + data.draw(
            st.sampled_from([b"\n", b"\0\n", b"\xff\n"])
        )
    (folder / "responses.jsonl").write_bytes(b"".join(lines))
    state = verify_run(folder, repair=True)
    assert [damage.line - 1 for damage in state.damage] == sorted(broken)
    intact = [record for number, record in enumerate(RECORDS) if number not in broken]
    assert list(iter_responses(folder)) == intact
    assert state.responses == len(intact)
    assert verify_run(folder).damage == ()


def test_a_run_that_is_being_written_is_not_repaired(dataset: Path, tmp_path: Path) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "run")
    info = read_run(tmp_path / "run").info
    with Journal(tmp_path / "run", info), pytest.raises(BadInput, match="another process"):
        verify_run(tmp_path / "run", repair=True)
    with pytest.raises(BadInput, match="no run here"):
        verify_run(tmp_path)
