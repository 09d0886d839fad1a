"""Runs on a full disk: a tmpfs of a few pages in its own mount namespace."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import msgspec
import pytest

from numbench.journal import read_run
from numbench.records import Response
from tests import servers
from tests.runner.test_run import ROOT, questions, small_dataset
from tests.servers import ReceivedRequest, Reply, serve

pytestmark = pytest.mark.slow

NUMBENCH = shlex.join([sys.executable, "-c", "from numbench.cli import main; main()"])
LONG = "digits " * 600

# The disk vanishes with the last process that sees it, so each act copies its files to $1.
ACTS = """
set -u
kept=$1 disk=$2
shift 2
mount -t tmpfs -o size=440k tmpfs "$disk"
act() {
    %(numbench)s run "$@" --out "$disk/run" >"$kept/$name.out" 2>"$kept/$name.err"
    echo $? >"$kept/$name.code"
    mkdir "$kept/$name"
    cp -a "$disk/." "$kept/$name/"
}
name=full; act "$@"
mount -o remount,size=8m "$disk"
name=roomy; act "$@"
name=done; act "$@"
"""


@cache
def namespace() -> tuple[str, ...]:
    """Return the command that runs another in a mount namespace; skip if that is forbidden."""
    refused = "no unshare command"
    with tempfile.TemporaryDirectory() as folder:
        for command in (("unshare", "-rm"), ("unshare", "-m")):
            if shutil.which("unshare") is None:
                break
            mount = [*command, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
            tried = subprocess.run(mount, capture_output=True, text=True)
            if tried.returncode == 0:
                return command
            refused = tried.stderr.strip()
    pytest.skip(f"this machine does not allow mounting a small disk: {refused}")


class Acts:
    """The files of three runs of one command: on the full disk, with room, and once more."""

    def __init__(self, folder: Path, server: servers.Server) -> None:
        self.kept, disk = folder / "kept", folder / "disk"
        self.kept.mkdir()
        disk.mkdir()
        dataset = str(small_dataset(folder / "data", 30))
        asking = ["--model", "openai/some", "--base-url", server.url, "--concurrency", "4"]
        asking += ["--dataset", dataset]
        self.disk = disk
        subprocess.run(
            [
                *namespace(),
                "sh",
                "-c",
                ACTS % {"numbench": NUMBENCH},
                "sh",
                self.kept,
                disk,
                *asking,
            ],
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "sk-planted-0123456789"},
            check=True,
            timeout=120,
        )

    def code(self, act: str) -> int:
        return int((self.kept / f"{act}.code").read_text())

    def failure(self, act: str) -> str:
        """Return the last line on stderr, the only one besides progress; stdout is empty."""
        assert (self.kept / f"{act}.out").read_text() == ""
        output = (self.kept / f"{act}.err").read_text().strip().splitlines()
        assert [line for line in output if line.startswith("numbench: ")] == output[-1:]
        assert "Traceback" not in "".join(output)
        return output[-1]

    def run(self, act: str) -> Path:
        return self.kept / act / "run"


async def talkative(received: ReceivedRequest) -> Reply:
    return servers.chat(f'{{"answer": 1, "because": "{LONG}"}}')


def test_a_full_disk_leaves_whole_lines_and_the_run_can_be_resumed(
    tmp_path: Path,
) -> None:
    prompts = {item.id: item.prompt for items in questions(30).values() for item in items}
    with serve(talkative) as server:
        acts = Acts(tmp_path, server)
        counts = server.counts
    assert acts.code("full") == 1
    output = acts.failure("full")
    assert f"{acts.disk}/run/responses.jsonl: No space left on device" in output
    assert "make room; " in output and output.endswith("the same command continues")
    data = (acts.run("full") / "responses.jsonl").read_bytes()
    assert data.endswith(b"\n")
    kept = [msgspec.json.decode(line, type=Response) for line in data.splitlines()]
    assert 0 < len(kept) < 60
    assert all(LONG in response.text for response in kept)
    assert acts.code("roomy") == 0
    whole = read_run(acts.run("roomy"))
    assert len(whole.responses) == 60
    assert (acts.run("roomy") / "responses.jsonl").read_bytes().startswith(data)
    assert {counts[prompts[response.item_id]] for response in kept} == {1}
    # There was space for the answers in flight.
    assert sum(counts.values()) == 60
    assert acts.code("done") == 0
    assert "0 answered now, 60 done earlier" in (acts.kept / "done.out").read_text()
