"""The workflow of the leaderboard template: syntax, rights, pinned actions, and file names."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="the workflow is read with pyyaml")

WORKFLOW = Path(__file__).parents[2] / "examples/leaderboard/.github/workflows/verify.yml"


@pytest.fixture
def workflow() -> Any:
    return yaml.safe_load(WORKFLOW.read_text("utf-8"))


def test_a_pull_request_has_no_right_to_write_and_scripts_take_no_expressions(
    workflow: Any,
) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow[True]) == {"pull_request", "push"}
    assert "permissions" not in workflow["jobs"]["verify"]
    assert "refs/heads/main" in workflow["jobs"]["publish"]["if"]
    assert "secrets." not in WORKFLOW.read_text("utf-8")
    for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/x@v1"))
        assert "${{" not in step.get("run", "")


@pytest.mark.skipif(
    not shutil.which("git") or not shutil.which("bash"), reason="needs git and bash"
)
def test_the_changed_run_folders_are_verified_whatever_their_names(
    workflow: Any, tmp_path: Path
) -> None:
    (script,) = (
        step["run"] for step in workflow["jobs"]["verify"]["steps"] if "BASE" in step.get("env", {})
    )
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]

    def commit(message: str) -> str:
        subprocess.run([*git, "add", "-A"], cwd=tmp_path, check=True)
        subprocess.run([*git, "commit", "-qm", message], cwd=tmp_path, check=True)
        head = subprocess.run([*git, "rev-parse", "HEAD"], cwd=tmp_path, check=True, stdout=-1)
        return head.stdout.decode().strip()

    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "submissions/old").mkdir(parents=True)
    (tmp_path / "submissions/old/run.json").write_text("{}")
    base = commit("old")
    names = ["new", "two words", "$(touch injected)", "-rf;touch injected", "line\nbreak"]
    for name in names:
        (tmp_path / "submissions" / name / "prompts").mkdir(parents=True)
        (tmp_path / "submissions" / name / "run.json").write_text("{}")
        (tmp_path / "submissions" / name / "prompts/a.txt").write_text("x")
    commit("new")
    tools = tmp_path.parent / f"{tmp_path.name}-tools"
    tools.mkdir()
    (tools / "numbench").write_text('#!/bin/bash\nprintf "%s\\0" "$@" > "$ARGUMENTS"\n')
    (tools / "numbench").chmod(0o755)
    environment = os.environ | {
        "BASE": base,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "ARGUMENTS": str(tools / "arguments"),
    }
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, check=True)
    command, complete, dashes, *folders = (tools / "arguments").read_text().split("\0")[:-1]
    assert (command, complete, dashes) == ("verify", "--complete", "--")
    assert sorted(folders) == sorted(f"submissions/{name}" for name in names)
    assert not list(tmp_path.rglob("injected"))
