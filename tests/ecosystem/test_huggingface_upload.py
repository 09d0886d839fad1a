"""`numbench export --push` against a stub of the hub's HTTP API on the loopback interface."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import Dataset
from tests import servers
from tests.reporting import runs

pytestmark = pytest.mark.slow

pytest.importorskip("huggingface_hub", reason="pip install 'numbench[huggingface]'")

TOKEN = "hf_loopback"


@dataclass
class Hub:
    """A stub of the hub with one repository. files: the content of what was committed."""

    repository: str
    files: dict[str, bytes] = field(default_factory=dict)
    large_files: dict[str, bytes] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    pull_requests: int = 0

    async def answer(self, received: servers.ReceivedRequest) -> servers.Reply:
        request, path = received.request, received.path
        if path.endswith("/validate-yaml"):
            return web.json_response({"errors": [], "warnings": []})
        if path.startswith("/large/"):
            self.large_files[path.rpartition("/")[2]] = await request.read()
            return web.json_response({})
        if self.repository not in path:
            headers = {"X-Error-Code": "RepoNotFound"}
            return web.json_response({"error": "not found"}, status=404, headers=headers)
        self.tokens.add(received.headers.get("authorization", ""))
        if "/preupload/" in path:
            return web.json_response(
                {"files": [upload_mode(file["path"]) for file in received.body["files"]]}
            )
        if path.endswith("/objects/batch"):
            objects = json.loads(await request.text())["objects"]
            return lfs_reply(f"http://{request.host}/large", objects)
        if "/commit/" in path:
            self.pull_requests += request.query.get("create_pr") == "1"
            self.commit((await request.text()).splitlines())
            url = f"http://{request.host}/{self.repository}"
            pull_request = {"pullRequestUrl": f"{url}/discussions/1"} if self.pull_requests else {}
            commit = {"success": True, "commitUrl": f"{url}/commit/abc", "commitOid": "abc"}
            return web.json_response(commit | pull_request)
        return web.json_response({})

    def commit(self, lines: list[str]) -> None:
        for entry in map(json.loads, lines):
            value = entry["value"]
            if entry["key"] == "file":
                self.files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                self.files[value["path"]] = self.large_files[value["oid"]]


def upload_mode(path: str) -> dict[str, object]:
    """Return how the hub wants a file: Parquet as a large file."""
    mode = "lfs" if path.endswith(".parquet") else "regular"
    return {"path": path, "uploadMode": mode, "shouldIgnore": False}


def lfs_reply(url: str, objects: list[dict[str, object]]) -> servers.Reply:
    """Return where to upload large files, in the format of Git LFS."""
    actions = [{"actions": {"upload": {"href": f"{url}/{entry['oid']}"}}} for entry in objects]
    targets = [entry | action for entry, action in zip(objects, actions, strict=True)]
    return web.json_response({"transfer": "basic", "objects": targets})


def export(
    endpoint: str, *arguments: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `numbench export` with the hub at `endpoint`, without the user's own token.

    Large files go by Git LFS: the stub does not speak the hub's other protocol, Xet.
    """
    home = str(Path(arguments[arguments.index("--out") + 1]).with_name("home"))
    hub = {"HF_HOME": home, "HF_ENDPOINT": endpoint, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(
        [sys.executable, "-m", "numbench", "export", *map(str, arguments)],
        env=os.environ | hub | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def tiny_dataset(folder: Path, *tasks: str) -> Dataset:
    """Return a generated dataset of four items per task."""
    return generate(DatasetSettings(name="tiny", tasks=tasks, size=4), folder / "data").dataset


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_benchmark_is_committed_with_exactly_the_exported_files(tmp_path: Path) -> None:
    data = tiny_dataset(tmp_path, "addition", "minmax")
    out = tmp_path / "out"
    out.mkdir()
    (out / "private.txt").write_text("not exported")
    hub = Hub("lab/numbench-tiny")
    with servers.serve(hub.answer) as server:
        done = export(
            server.url, data.path, "--to", "huggingface", "--out", out, "--push", hub.repository
        )
    assert done.returncode == 0, done.stderr
    written = files_below(out)
    del written["private.txt"]
    assert hub.files == written
    assert set(written) == {
        "README.md",
        "eval.yaml",
        "addition/addition.parquet",
        "minmax/minmax.parquet",
    }
    assert hub.tokens == {f"Bearer {TOKEN}"}
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("a commit to the dataset lab/numbench-tiny: 4 files, ")
    assert last == f"{server.url}/lab/numbench-tiny/commit/abc"
    assert TOKEN not in done.stdout + done.stderr


def test_results_become_a_pull_request_for_the_model(tmp_path: Path) -> None:
    folder = runs.run(tmp_path / "run", runs.dataset(tmp_path), runs.all_right())
    out = tmp_path / "out"
    hub = Hub("lab/model")
    results = ("--to", "eval-results", "--benchmark", "lab/numbench-v1")
    with servers.serve(hub.answer) as server:
        done = export(server.url, folder, *results, "--out", out, "--push", "lab/model")
    assert done.returncode == 0, done.stderr
    assert hub.files == files_below(out)
    assert list(hub.files) == [".eval_results/numbench-tiny-minimal-paper.yaml"]
    assert hub.pull_requests == 1
    assert "a pull request for the model lab/model: 1 file, " in done.stdout
    assert done.stdout.splitlines()[-1] == f"{server.url}/lab/model/discussions/1"


def test_without_a_token_the_plan_is_shown_and_nothing_is_sent(tmp_path: Path) -> None:
    data = tiny_dataset(tmp_path, "addition")
    hub = Hub("lab/numbench-tiny")
    with servers.serve(hub.answer) as server:
        done = export(
            server.url,
            *(data.path, "--to", "huggingface", "--out", tmp_path / "out"),
            *("--push", hub.repository),
            HF_TOKEN="",
        )
        assert not server.received
    assert done.returncode == 2
    assert "eval.yaml" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "set HF_TOKEN" in done.stderr


@pytest.mark.parametrize(
    ("repository", "message"),
    [("lab/missing", "hf repos create lab/missing"), ("lab/a..b", "--push lab/a..b")],
)
def test_an_impossible_repository_is_reported_in_one_line(
    repository: str, message: str, tmp_path: Path
) -> None:
    data = tiny_dataset(tmp_path, "addition")
    with servers.serve(Hub("lab/other").answer) as server:
        done = export(
            server.url,
            *(data.path, "--to", "huggingface", "--out", tmp_path / "out"),
            *("--push", repository),
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_a_rejected_upload_is_reported_in_one_line(tmp_path: Path) -> None:
    async def forbid(received: servers.ReceivedRequest) -> servers.Reply:
        return web.json_response({"error": "eval.yaml is invalid"}, status=403)

    data = tiny_dataset(tmp_path, "addition")
    with servers.serve(forbid) as server:
        done = export(
            server.url,
            *(data.path, "--to", "huggingface", "--out", tmp_path / "out"),
            *("--push", "lab/numbench-tiny"),
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "eval.yaml is invalid" in done.stderr
    assert TOKEN not in done.stderr
