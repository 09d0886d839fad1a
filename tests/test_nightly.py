"""The commands of the page `nightly`, as a continuous integration would run them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from numbench.dataset.store import open_dataset
from numbench.records import answer_text
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, serve

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "docs" / "nightly.md"
LIMIT = 12
PRICE = """[[price]]
route = "openai/NAME"
input = 1.0
output = 10.0
date = "2026-01-31"
source = "test"
"""


def steps() -> list[str]:
    """The commands of the steps that call numbench, without those of the system."""
    workflow = re.search(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert workflow
    return re.findall(r"- run: (numbench .*)", workflow[1])


def answers() -> dict[str, str]:
    items = (item for items in open_dataset("v1").by_task.values() for item in items[:LIMIT])
    return {item.prompt: answer_text(item.answer) for item in items}


class Night(NamedTuple):
    """Exit codes and JSON of the steps up to the first that fails; the last one always runs."""

    codes: list[int]
    run: dict[str, Any]
    compare: dict[str, Any]


class Job:
    """A folder with the baseline, in which the steps of the page run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, answers()
        with serve(self.answering(lambda number: number % 20 > 0)) as server:
            for command in re.findall(
                r"^    (numbench .*)", PAGE.read_text(encoding="utf-8"), re.M
            )[:2]:
                command = command.replace("http://127.0.0.1:8000/v1", server.url)
                assert self.call(command.replace("--limit 100", f"--limit {LIMIT}")) == 0

    def answering(self, is_correct: Callable[[int], bool], **usage: int) -> servers.Script:
        numbers = {prompt: number for number, prompt in enumerate(self.known)}

        async def script(received: ReceivedRequest) -> Reply:
            (prompt,) = (known for known in self.known if known in received.prompt)
            answer = self.known[prompt] if is_correct(numbers[prompt]) else "7"
            value = f'"{answer}"' if re.fullmatch("[A-Z]", answer) else answer
            text = f'{{"answer": {f"[{answer}]" if "," in answer else value}}}'
            return servers.chat(text, usage=usage or None)

        return script

    def call(self, command: str, before: str = "", **environment: str) -> int:
        program = f'{sys.executable} -c "from numbench.cli import main; main()"'
        script = before + command.replace("numbench ", f"{program} ", 1)
        own = {"PATH": os.environ["PATH"], "COLUMNS": "200", **environment}
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=self.folder, env=own, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return done.returncode

    def night(self, url: str, options: str = "", before: str = "", clean: bool = False) -> Night:
        if clean:
            shutil.rmtree(self.folder / "results", ignore_errors=True)
        codes: list[int] = []
        options = f"--dataset v1 --limit {LIMIT} --max-tokens 4096 {options}"
        for number, command in enumerate(steps()):
            if not any(codes) or number == len(steps()) - 1:
                codes.append(
                    self.call(
                        command, before if number == 0 else "", MODEL="openai/NAME", SERVER=url,
                        OPTIONS=options, OPENAI_API_KEY="sk-planted-0123456789",
                    )
                )  # fmt: skip
        files = (self.folder / f"{name}.json" for name in ("run", "compare"))
        night = Night(codes, *(json.loads(file.read_text(encoding="utf-8")) for file in files))
        for code, output in ((codes[0], night.run), (codes[-1], night.compare)):
            assert list(output) == ["schema", "numbench", "command", "exit_code", "error", "result"]
            # Whether too much is missing is for the comparison to say.
            assert (code == 0) == (output["exit_code"] in (0, 3))
        return night


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_night_passes_or_finds_the_regression(job: Job) -> None:
    with serve(job.answering(lambda number: number % 20 > 0 and number != 1)) as server:
        night = job.night(server.url)
    assert night.codes == [0, 0, 0]
    (report,) = night.run["result"]
    assert report["answered"] == 9 * LIMIT and report["unanswered"] == 0
    compared = night.compare["result"]
    assert compared["summary"].startswith("PASS: All ") and compared["failures"] == []
    assert [compared[run]["model"] for run in ("old", "new")] == ["openai/NAME"] * 2
    assert compared["new"]["server"] == server.url
    assert [task["task"] for task in compared["tasks"] if task["decides"]] == ["all"]
    with serve(job.answering(lambda number: number % 3 > 0)) as server:
        night = job.night(server.url, clean=True)
    assert night.codes == [0, 1, 1]
    assert night.compare["result"]["summary"].startswith("FAIL: All ")
    assert "falls short of baseline.json: All: " in night.compare["error"]


def test_a_night_that_fails_says_why_and_resumes(job: Job) -> None:
    with serve(job.answering(lambda number: True)) as server:
        down = server.url
    night = job.night(down)
    assert night.run["exit_code"] == 2 and "no server at" in night.run["error"]
    assert night.run["result"] is None and night.codes[-1] != 0
    with serve(lambda _: servers.error(401, "Incorrect API key provided")) as server:
        night = job.night(server.url)
    assert night.run["exit_code"] in (1, 2) and "401" in night.run["error"]
    (job.folder / "numbench-catalogue.toml").write_text(PRICE)
    always = job.answering(lambda number: True, prompt_tokens=100, completion_tokens=400)
    with serve(always) as server:
        night = job.night(server.url, "--max-cost 0.1 --concurrency 2", clean=True)
        assert night.run["exit_code"] == 3 and "--max-cost 0.1" in night.run["error"]
        assert night.codes == [0, 1, 1]
    with serve(always) as moved:
        night = job.night(moved.url)
        asked = len(server.received), len(moved.received)
    assert night.codes == [0, 0, 0] and min(asked) > 0 and sum(asked) <= 9 * LIMIT + 2
    (report,) = night.run["result"]
    assert f"the server moved during the run: {server.url}, {moved.url}" in report["warnings"]
    with serve(always) as server:
        night = job.night(server.url, before="ulimit -f 8; ", clean=True)
    assert night.codes[0] == 1 and "results/2" in night.run["error"]
