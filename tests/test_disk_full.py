"""Runs on a disk that is really full: a tmpfs of some pages, in a mount namespace of its own."""

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

from bench.journal import read_run
from bench.records import Response
from tests import servers
from tests.servers import Asked, Reply, serve
from tests.test_runner import ROOT, questions, small_dataset

NUMBENCH = shlex.join([sys.executable, "-c", "from bench.cli import main; main()"])
PAGE = os.sysconf("SC_PAGE_SIZE")
LONG = "digits " * 60

# The disk goes with the last process that sees it, so each act leaves its traces in $1.
ACTS = """
set -u
kept=$1 disk=$2 free=$3
shift 3
mount -t tmpfs -o size=%(pages)sk tmpfs "$disk"
if [ "$free" -ge 0 ]; then
    dd if=/dev/zero of="$disk/filler" bs=%(page)s count=$((%(count)s - free)) 2>/dev/null
fi
act() {
    %(numbench)s run "$@" --out "$disk/run" >"$kept/$name.out" 2>"$kept/$name.err"
    echo $? >"$kept/$name.code"
    mkdir "$kept/$name"
    cp -a "$disk/." "$kept/$name/"
}
name=full; act "$@"
mount -o remount,size=4m "$disk"
name=roomy; act "$@"
name=done; act "$@"
"""


@cache
def namespace() -> tuple[str, ...]:
    """The command that runs another in a mount namespace. Skips where none may be made."""
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
    pytest.skip(f"this machine lets nobody mount a small disk: {refused}")


class Acts:
    """What three runs of one command left: on the full disk, with room, and once more."""

    def __init__(self, folder: Path, server: servers.Server, pages: int, free: int) -> None:
        """A disk of `pages`, of which `free` are free, or all of them where it is negative."""
        self.kept, disk = folder / "kept", folder / "disk"
        self.kept.mkdir()
        disk.mkdir()
        size = {"pages": pages * PAGE // 1024, "page": PAGE, "count": pages, "numbench": NUMBENCH}
        dataset = str(small_dataset(folder / "data", 30))
        asking = ["--model", "openai/some", "--base-url", server.url, "--concurrency", "4"]
        asking += ["--dataset", dataset]
        self.disk = disk
        subprocess.run(
            [*namespace(), "sh", "-c", ACTS % size, "sh", self.kept, disk, str(free), *asking],
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "sk-planted-0123456789"},
            check=True,
            timeout=120,
        )

    def code(self, act: str) -> int:
        return int((self.kept / f"{act}.code").read_text())

    def failure(self, act: str) -> str:
        """The last line on stderr, the only one that is not progress; nothing is on stdout."""
        assert (self.kept / f"{act}.out").read_text() == ""
        said = (self.kept / f"{act}.err").read_text().strip().splitlines()
        assert [line for line in said if line.startswith("numbench: ")] == said[-1:]
        assert "Traceback" not in "".join(said)
        return said[-1]

    def run(self, act: str) -> Path:
        return self.kept / act / "run"


async def talkative(asked: Asked) -> Reply:
    return servers.chat(f'{{"answer": 1, "because": "{LONG}"}}')


def test_a_disk_that_fills_up_keeps_whole_lines_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    prompts = {item.id: item.prompt for items in questions(30).values() for item in items}
    with serve(talkative) as server:
        acts = Acts(tmp_path, server, pages=8, free=-1)
        counts = server.counts
    assert acts.code("full") == 1
    said = acts.failure("full")
    assert f"{acts.disk}/run/responses.jsonl: No space left on device" in said
    assert said.endswith("make room and run the same command again")
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
    # Only what was under way when the disk was full is asked again.
    assert sum(counts.values()) <= 60 + 4
    assert acts.code("done") == 0
    assert "0 answered now, 60 before" in (acts.kept / "done.out").read_text()


@pytest.mark.parametrize("free", [0, 1, 2])
def test_a_disk_that_is_full_at_the_start_leaves_nothing_half_written(
    tmp_path: Path, free: int
) -> None:
    with serve(talkative) as server:
        acts = Acts(tmp_path, server, pages=8, free=free)
        asked = len(server.asked)
    assert acts.code("full") == 1
    said = acts.failure("full")
    assert f"{acts.disk}/run" in said
    assert "No space left on device" in said
    assert "make room and run the same command again" in said
    left = {path.name: path.stat().st_size for path in acts.run("full").glob("[!.]*")}
    assert left.pop("responses.jsonl", 0) == 0
    assert left.keys() <= {"run.json"}
    assert left.get("run.json") != 0
    assert not list(acts.run("full").glob(".run.json.*"))
    assert acts.code("roomy") == 0
    assert len(read_run(acts.run("roomy")).responses) == 60
    assert asked <= 60 + 4
