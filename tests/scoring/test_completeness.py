"""A run is complete, or not, to every command that needs a complete one."""

import shutil
from pathlib import Path

import msgspec
import pytest

import numbench as nb
from numbench.records import Failure, Response
from tests.support.command_line import CommandLine


@pytest.mark.parametrize(
    ("failed", "is_complete"), [(1, True), (2, False)], ids=["99 percent", "98 percent"]
)
def test_all_commands_agree_which_run_is_complete(
    failed: int, is_complete: bool, tmp_path: Path
) -> None:
    """One task of two lacks answers to some of its 100 items."""
    nb.generate(name="own", size=100, tasks=["addition", "minmax"], out=tmp_path / "own")
    old = nb.run(model="baseline/float64", dataset=tmp_path / "own", out=tmp_path / "old").path
    shutil.copytree(old, tmp_path / "new")
    decode = msgspec.json.Decoder(Response).decode
    responses = [decode(line) for line in (old / "responses.jsonl").read_bytes().splitlines()]
    lost = [one.item_id for one in responses if one.item_id.startswith("addition")][:failed]
    failure = Failure(kind="item", message="too long")
    (tmp_path / "new" / "responses.jsonl").write_bytes(
        b"".join(
            msgspec.json.encode(
                Response(item_id=one.item_id, error=failure) if one.item_id in lost else one
            )
            + b"\n"
            for one in responses
        )
    )
    numbench = CommandLine(tmp_path, None)
    fails = 0 if is_complete else 1
    answered = f"{100 - failed} of 100"

    checked = numbench("verify", "new", "--complete", code=fails)
    assert f"{failed} of 200 samples have no answer" in " ".join(checked.split())
    numbench("verify", "new", code=fails)

    site = numbench("leaderboard", "old", "new", "--out", "site")
    assert ("incomplete and not ranked" in site) is not is_complete

    compared = numbench("compare", "old", "new", code=fails)
    note = "Questions answered by only one run: 1." if is_complete else f"{answered} previously"
    assert note in " ".join(compared.split())
