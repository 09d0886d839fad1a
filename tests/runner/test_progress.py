"""Progress of a run: its statistics, the live table, and the lines of a log."""

import errno
import io
import re
import sys
from contextlib import redirect_stderr
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from numbench.records import Item, Response, Usage
from numbench.runner.progress import RunProgress, RunStats, TaskProgress, judged
from numbench.runner.progress_display import ProgressDisplay, progress_line, run_view, show_progress
from numbench.tasks import PAPER_TASKS, SCALED_TASKS
from numbench.tasks.items import make_item


class Clock:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def addition(count: int) -> list[Item]:
    return [make_item("addition", "+", (str(n), "1"), {}) for n in range(count)]


def answer(text: str = "x", generated: int | None = None, cost: float | None = None) -> Response:
    return Response(item_id="x", text=text, usage=Usage(generated=generated), cost=cost)


def count(stats: RunStats, item: Item, response: Response) -> None:
    """Count a response without earlier turns."""
    stats.count(item, response, response)


def test_items_of_earlier_calls_are_in_the_counts_but_not_in_the_rate() -> None:
    clock, items = Clock(), addition(30)
    stats = RunStats(items, clock=clock)
    assert (stats.progress().rate, stats.progress().remaining_seconds) == (0.0, None)
    for item in items[:20]:
        stats.add(judged(item, answer(), None))
        stats.previously_done += 1
    clock.now += 5
    count(stats, items[20], answer())
    now = stats.progress()
    assert (now.done, now.previously_done, now.seconds) == (21, 20, 5.0)
    assert now.rate == pytest.approx(0.2)
    assert now.remaining_seconds == pytest.approx(45.0)


def progress(done: int = 312, seconds: float = 83.0, **changes: Any) -> RunProgress:
    task = TaskProgress(
        "",
        total=500,
        answered=done,
        scored=done,
        correct=done // 2,
        answers_with_tokens=done,
        generated_tokens=12_345 * done,
        cost=12.3456,
    )
    now = RunProgress(
        tasks=tuple(task._replace(task=name) for name in PAPER_TASKS),
        previously_done=1200,
        retries=12,
        seconds=seconds,
        in_flight=7,
        concurrency_limit=8,
        pause_seconds=12.0,
    )
    return now._replace(**changes)


def measurement(task_count: int) -> RunProgress:
    names = list(SCALED_TASKS)[:task_count]
    return RunProgress(
        tasks=tuple(
            TaskProgress(name, 60, 48, 0, 48, 21, 48, 123_456, cost=1.25) for name in names
        ),
        seconds=65.0,
        horizons=dict.fromkeys(names, "h50 1,234 [1,001, ≥ 4,096] · complete (precision)"),
        complete=task_count // 2,
    )


def drawn(now: RunProgress, width: int = 80, ended: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), record=True, width=width)
    console.print(run_view("gpt-5 · reasoning minimal · v1", now, ended))
    text = console.export_text().replace("\N{NO-BREAK SPACE}", " ")
    return [re.sub("[━╺╸ ]+", " ", line).rstrip() for line in text.splitlines()]


FOOTER = (
    "1,162 answers/min · 1:23 elapsed · 1:27 remaining · 12 retries · "
    "7 in flight, limit 8 · paused by the provider for 0:12 · 1,200 done earlier"
)


def test_the_table_has_a_row_per_task_and_one_for_all() -> None:
    lines, values = drawn(progress(), width=81), "50.0% correct · 12,345 tokens each"
    assert lines[0] == "gpt-5 · reasoning minimal · v1"
    assert f"Mean 312/500 {values} · $12.35" in lines
    assert f"All 2808/4500 {values} · $111.11" in lines
    assert " ".join(lines[11:]) == FOOTER
    nothing = RunProgress(tasks=(TaskProgress("mean", 5),))
    assert "Mean 0/5" in drawn(nothing, width=60)
    partly = RunProgress(tasks=(TaskProgress("mean", 5, answered=2, cost=1.5, unknown_costs=1),))
    assert "≥ $1.5000" in "\n".join(drawn(partly))


@pytest.mark.parametrize("width", [80, 60, 40])
def test_the_table_fits_the_width_of_the_terminal(width: int) -> None:
    lines = drawn(progress(), width=width)
    assert max(map(len, lines)) <= width and len(lines) <= 24
    assert "retries" in "\n".join(lines)
    if width < 60:
        return
    text = "\n".join(drawn(measurement(12), width=width))
    assert max(map(len, text.splitlines())) <= width and "…" not in text
    assert text.count("[1,001, ≥ 4,096]") == 12
    assert "6 of 12 tasks complete" in text and "1:05 elapsed" in text and "remaining" not in text


def test_notes_and_failures_are_shown_without_control_characters() -> None:
    note = "job 1 of 2: 312 of 4,500 done at the provider"
    failure = "HTTP 429: tokens per day \x1b[31m used up " + 300 * "x"
    lines = drawn(progress(note=note, last_failure=failure, concurrency_limit=0))
    text = " ".join(lines)
    assert lines[11].startswith(note) and "in flight" not in text
    assert "last failure: HTTP 429: tokens per day \\x1b[31m used up xxx" in text
    assert text.endswith("x…")


def test_a_line_has_counts_accuracy_tokens_and_cost() -> None:
    values = "50.0% correct · 12,345 tokens each · $111.11"
    assert progress_line(progress()) == f"2,808/4,500 done · {values} · {FOOTER}"
    assert "2 answers/min" in progress_line(progress(done=134, seconds=240.0))
    # At the end the rate is the mean and no time remains.
    assert progress_line(progress(done=500, seconds=100.0), ended=True).endswith(
        " · $111.11 · 1,980 answers/min · 1:40 elapsed · 12 retries · 1,200 done earlier"
    )
    line = progress_line(measurement(2))
    assert line.startswith("96 answered · 43.8% correct · 2,572 tokens each · $2.5000 · ")
    assert "1 of 2 tasks complete" in line and "remaining" not in line


def test_a_log_is_empty_if_the_run_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("some") as show:
        for seconds in (0.0, 0.4, 1.9):
            show(progress(done=100, seconds=seconds, previously_done=900))
    assert capsys.readouterr().err == ""
    with show_progress("some") as show:
        show(progress(done=100, seconds=2.0, previously_done=900))
        assert "900/4,500" in capsys.readouterr().err


def test_a_log_has_a_first_line_then_one_per_interval_then_a_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with show_progress("so\x1bme") as show:
        for second in range(100):
            show(progress(done=second + 1, seconds=float(second), previously_done=1))
    output = capsys.readouterr().err.splitlines()
    elapsed = [re.search(r"(\d+:\d+) elapsed", text) for text in output]
    assert [found and found[1] for found in elapsed] == ["0:00", "0:30", "1:00", "1:30", "1:39"]
    for line in output:
        assert abs(datetime.now(UTC) - datetime.fromisoformat(line[:25])) < timedelta(hours=1)
        assert line[25:].startswith(" so\\x1bme: ")
    assert ["in flight" in text for text in output] == [True] * 4 + [False]


HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def test_a_table_is_redrawn_a_few_times_per_second_and_left_at_the_end() -> None:
    file = io.StringIO()
    display = ProgressDisplay("some", Console(file=file, force_terminal=True, width=80, height=24))
    for done in range(1, 401):
        display(progress(done, done / 100, previously_done=0))
    display.close()
    text = file.getvalue()
    assert 14 <= text.count("elapsed") <= 20
    assert "╺" in text  # Bars of known length have an end.
    assert text.count(HIDE) == text.count(SHOW) == 1
    assert text.rindex(SHOW) > text.rindex("3600/4500")
    empty = io.StringIO()
    ProgressDisplay("some", Console(file=empty, force_terminal=True)).close()
    assert empty.getvalue() == ""


@pytest.mark.parametrize(("term", "has_table"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], term: str, has_table: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show_progress("some") as show:
        show(progress())
    assert (HIDE in capsys.readouterr().err) == has_table


def test_a_closed_terminal_or_log_does_not_end_the_work() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    display = ProgressDisplay("some", Console(file=Closed(), force_terminal=True))
    display(progress(seconds=1.0))
    display(progress(seconds=2.0))
    display.close()
    with redirect_stderr(Closed()), show_progress("some", as_lines=True) as show:
        show(progress(seconds=2.0))
