"""The live table and the sparse lines: what is read off them, and that a terminal survives."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import IO

import pytest
from rich.console import Console

from bench.runner.live import Log, Screen, View, line
from bench.runner.progress import Progress, TaskProgress
from bench.screen import Drawing
from bench.tasks import TASKS
from tests import servers
from tests.servers import Asked, Reply, serve
from tests.test_runner import KEY, ROOT, small_dataset

CALL = (
    "import sys; from pathlib import Path; from bench.runner import *\n"
    "from bench.scoring import judge\n"
    "url, data, out = sys.argv[1:]\n"
    "spec = RunSpec('openai/some', dataset=data, out=Path(out), base_url=url)\n"
    "run(spec, concurrency=2, judge=judge)\n"
)
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def progress(done: int = 312, seconds: float = 83.0, **changes: object) -> Progress:
    tasks = tuple(
        TaskProgress(
            task=task,
            total=500,
            answered=done,
            judged=done,
            right=done // 2,
            counted=done,
            generated=12_345 * done,
            cost=12.3456,
        )
        for task in TASKS
    )
    now = Progress(
        tasks=tasks,
        before=1200,
        retries=12,
        seconds=seconds,
        rate=8.46,
        in_flight=7,
        allowed=8,
        asked_for=64,
        held=12.0,
        judging=True,
    )
    return now._replace(**changes)


def drawn(now: Progress, width: int = 80, height: int = 24, ended: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), record=True, width=width, height=height)
    console.print(View("gpt-5 · reasoning minimal · v1", now, ended))
    return [text.rstrip() for text in console.export_text().splitlines()]


def test_the_table_shows_each_task_and_the_whole() -> None:
    lines = drawn(progress())
    assert lines[0] == "gpt-5 · reasoning minimal · v1"
    assert lines[1].split() == ["Task", "Done", "Exact", "match", "Tokens/item", "Cost"]
    mean = next(text for text in lines if text.startswith("Mean"))
    assert re.sub("[━╺╸ ]+", " ", mean) == "Mean 312/500 50.0% of 312 12,345 $12.35"
    whole = next(text for text in lines if text.startswith("All"))
    assert "2,808/4,500" in whole
    assert "50.0% of 2,808" in whole
    assert "$111.11" in whole
    assert len(lines) <= 24


def test_below_the_table_stands_how_it_goes() -> None:
    said = " · ".join(drawn(progress())[12:])
    assert said == (
        "8.5 items/s · 1:23 gone · 3:20 left · 12 retries · 7 of 8 in flight, 64 asked for · "
        "held back by the provider for 0:12 · 1,200 from before"
    )


@pytest.mark.parametrize("width", [80, 60, 40])
def test_it_fits_the_terminal_with_nothing_cut_off(width: int) -> None:
    lines = drawn(progress(), width=width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    assert ("$111.11" in text, "12,345" in text) == (True, width >= 60)
    assert "3:20 left" in text
    assert len(lines) <= 24


def test_on_a_low_terminal_the_whole_stays_and_the_tasks_go() -> None:
    lines = drawn(progress(), height=10)
    assert len(lines) < 10
    assert any(text.startswith("All") for text in lines)
    assert "3:20 left" in "\n".join(lines)
    assert any(text.startswith("Std") for text in drawn(progress(), height=10, ended=True))


def test_what_is_unknown_is_a_dash_and_what_is_incomplete_is_marked() -> None:
    nothing = Progress(tasks=(TaskProgress("mean", 5),), judging=True)
    mean = next(text for text in drawn(nothing, width=60) if text.startswith("Mean"))
    assert mean.split() == ["Mean", "0/5", "–", "–", "–"]
    partly = Progress(tasks=(TaskProgress("mean", 5, answered=2, cost=1.5, unpriced=1),))
    assert "≥ $1.5000" in "\n".join(drawn(partly))


def test_without_a_judge_there_is_no_accuracy() -> None:
    text = "\n".join(drawn(progress(judging=False)))
    assert "Exact match" not in text
    assert "of 312" not in text


def test_a_note_comes_first_and_requests_of_others_are_not_paced() -> None:
    note = "job 1 of 2: 312 of 4,500 done at the provider"
    lines = drawn(progress(note=note, asked_for=0, allowed=0, in_flight=0, held=0.0))
    assert lines[12].startswith(note)
    assert "in flight" not in "\n".join(lines)


def test_at_the_end_the_rate_is_the_mean_and_nothing_is_awaited() -> None:
    said = " · ".join(drawn(progress(done=500, seconds=100.0), ended=True)[12:])
    assert said == "33.0 items/s · 1:40 gone · 12 retries · 1,200 from before"


def test_a_line_holds_all_of_it() -> None:
    assert line(progress()) == (
        "2,808/4,500 · 50.0% right of 2,808 · 34,664,760 tokens generated · $111.11 · "
        "8.5 items/s · 1:23 gone · 3:20 left · 12 retries · 7 of 8 in flight, 64 asked for · "
        "held back by the provider for 0:12 · 1,200 from before"
    )


def test_a_slow_rate_is_told_per_minute() -> None:
    assert "1.5 items/min" in line(progress(rate=0.025))


def test_a_log_says_nothing_of_a_run_that_is_refused_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Log("some")
    for seconds in (0.0, 0.4, 1.9):
        log.watch(progress(done=100, seconds=seconds, before=900))
    log.close()
    assert capsys.readouterr().err == ""
    slow = Log("some")
    slow.watch(progress(done=100, seconds=2.0, before=900))
    assert "900/4,500" in capsys.readouterr().err


def test_a_log_has_the_first_line_at_once_then_few_then_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Log("some", seconds=30.0)
    for second in range(100):
        log.watch(progress(done=second, seconds=float(second), before=1))
    log.close()
    log.close()
    said = capsys.readouterr().err.splitlines()
    gone = [re.search(r"(\d+:\d+) gone", text) for text in said]
    assert [found and found[1] for found in gone] == ["0:00", "0:30", "1:00", "1:30", "1:39"]
    assert all(text.startswith("some: ") for text in said)
    assert ["in flight" in text for text in said] == [True] * 4 + [False]


def test_a_run_that_never_began_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Log("some").close()
    file = io.StringIO()
    Screen("some", Drawing(Console(file=file, force_terminal=True))).close()
    assert capsys.readouterr().err == file.getvalue() == ""


def test_the_screen_is_drawn_a_few_times_a_second_and_ends_with_the_last() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=24)
    screen = Screen("some", Drawing(console, seconds=0.25))
    for n in range(1, 401):
        screen.watch(progress(done=n, seconds=n / 100))
    screen.close()
    text = file.getvalue()
    assert 14 <= len(re.findall("MinMax", text)) <= 20
    assert "400/500" in text
    assert text.count(HIDE) == text.count(SHOW) == 1
    assert text.rindex(SHOW) > text.rindex("400/500")


def test_a_terminal_that_has_gone_does_not_end_a_run() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    screen = Screen("some", Drawing(Console(file=Gone(), force_terminal=True), seconds=0.0))
    screen.watch(progress())
    screen.watch(progress(seconds=99.0))
    screen.close()


def start(
    server: servers.Server, dataset: Path, out: Path
) -> tuple[subprocess.Popen[str], IO[bytes]]:
    """A run whose stderr is a terminal of 80 × 24."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, server.url, str(dataset), str(out)],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"OPENAI_API_KEY": KEY, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    return process, os.fdopen(ours, "rb", buffering=0)


def read_all(terminal: IO[bytes]) -> str:
    """What is written to the terminal until nobody can write any more."""
    said = b""
    with terminal:
        while True:
            try:
                data = terminal.read(65536)
            except OSError:
                break
            if not data:
                break
            said += data
    return re.sub(r"\x1b\[[0-9;]*m", "", said.decode())


async def good(asked: Asked) -> Reply:
    return servers.chat(usage={"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.5})


def test_on_a_terminal_the_table_stays_and_the_cursor_comes_back(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "data", 5)
    with serve(good) as server:
        process, terminal = start(server, dataset, tmp_path / "run")
        said = read_all(terminal)
        assert process.communicate() == ("", None)
    assert process.returncode == 0
    assert "openai/some · reasoning default · small" in said
    last = said[said.rindex("MinMax") :]
    # The answers are all 1, which is right for one of five minima and no sum but none.
    assert re.search(r"MinMax +5/5 .* 20\.0% of 5 +4 +\$2\.5000", last)
    assert re.search(r"All +10/10 .* 10\.0% of 10 +4 +\$5\.0000", last)
    assert said.count(HIDE) == said.count(SHOW) == 1
    assert said.rindex(SHOW) > said.rindex("All")


def test_after_an_interrupt_the_table_stays_and_the_cursor_comes_back(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "data", 50)
    process: subprocess.Popen[str] | None = None

    async def script(asked: Asked) -> Reply:
        if len(server.asked) == 10:
            assert process is not None
            process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.3)
        return await good(asked)

    with serve(script) as server:
        process, terminal = start(server, dataset, tmp_path / "run")
        said = read_all(terminal)
        process.communicate()
        assert process.returncode != 0
        assert len(server.asked) < 100
    assert said.count(HIDE) == said.count(SHOW) == 1
    ended = said[: said.rindex(SHOW)]
    # One request may have been refused by the run that ends; what was answered is shown.
    assert re.search(r"All +\d+/100 ", ended[ended.rindex("MinMax") :])
