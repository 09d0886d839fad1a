"""The shared live display: a table on a terminal, occasional lines in a log."""

from __future__ import annotations

import errno
import io
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from rich.console import Console
from rich.text import Text

from numbench.progress_display import (
    LogDisplay,
    ProgressFormat,
    TerminalDisplay,
    ThrottledLive,
    show_states,
)


class State(NamedTuple):
    seconds: float
    done: int = 1
    notice: str = ""
    urgent: bool = False


FORMAT = ProgressFormat[State](
    line=lambda state, ended: f"{state.done} done{' at the end' if ended else ''}",
    table=lambda state, ended: Text(f"{state.done} of 400"),
    has_news=lambda state: state.done > 0,
    notices=lambda state: (state.notice,),
    is_urgent=lambda state: state.urgent,
)


def terminal(file: io.StringIO, seconds: float = 0.25) -> TerminalDisplay[State]:
    console = Console(file=file, force_terminal=True, width=80, height=24)
    return TerminalDisplay(FORMAT, ThrottledLive(console, seconds))


def logged(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on stderr without their times, which are those of now."""
    lines = []
    for line in capsys.readouterr().err.splitlines():
        time, text = line[:25], line[26:]
        assert abs(datetime.now(UTC) - datetime.fromisoformat(time)) < timedelta(hours=1)
        lines.append(text)
    return lines


def test_a_log_has_a_line_per_interval_and_a_final_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = LogDisplay("work", FORMAT, interval_seconds=30.0)
    for second in range(100):
        log.update(State(float(second), done=second))
    log.close()
    log.close()
    assert logged(capsys) == [
        "work: 1 done",
        "work: 31 done",
        "work: 61 done",
        "work: 91 done",
        "work: 99 done at the end",
    ]


def test_a_log_prints_nothing_without_news(capsys: pytest.CaptureFixture[str]) -> None:
    log = LogDisplay("work", FORMAT)
    log.close()
    log.update(State(100.0, done=0))
    log.close()
    assert capsys.readouterr().err == ""


def test_a_notice_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    log = LogDisplay("work", FORMAT)
    for second in range(5):
        log.update(State(float(second), done=0, notice="stopping\x1b[2J" if second > 2 else ""))
    assert logged(capsys) == ["work: stopping\\x1b[2J"]


def test_a_table_is_redrawn_a_few_times_per_second_and_left_at_the_end() -> None:
    file = io.StringIO()
    display = terminal(file)
    for done in range(1, 401):
        display.update(State(done / 100, done))
    display.close()
    text = file.getvalue()
    assert 14 <= text.count("of 400") <= 20
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert text.rindex("\x1b[?25h") > text.rindex("400 of 400")


def test_an_urgent_state_is_drawn_at_once() -> None:
    file = io.StringIO()
    display = terminal(file)
    display.update(State(1.0, 1))
    display.update(State(1.01, 2))
    display.update(State(1.02, 3, urgent=True))
    assert ("2 of 400" in file.getvalue(), "3 of 400" in file.getvalue()) == (False, True)


def test_a_terminal_without_updates_stays_empty() -> None:
    file = io.StringIO()
    terminal(file).close()
    assert file.getvalue() == ""


def test_a_closed_terminal_does_not_end_the_work() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    display = terminal(Closed(), seconds=0.0)
    display.update(State(1.0))
    display.update(State(2.0))
    display.close()


def test_without_a_terminal_states_are_logged(capsys: pytest.CaptureFixture[str]) -> None:
    with show_states("work", FORMAT) as show:
        show(State(0.0, 7))
    assert logged(capsys) == ["work: 7 done"]
