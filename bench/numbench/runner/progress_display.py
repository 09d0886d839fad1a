"""The progress of a run on stderr: a table on a terminal, a line every 30 seconds in a log."""

from __future__ import annotations

import os
import sys
from contextlib import closing, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from numbench.errors import printable
from numbench.runner.progress import SEPARATOR, RunProgress, TaskProgress
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

REDRAW_INTERVAL_SECONDS = 0.25
LOG_INTERVAL_SECONDS = 30.0

FIRST_LINE_DELAY_SECONDS = 2.0
"""Seconds without results after which the progress is first shown."""

_MAX_FAILURE_CHARACTERS = 150


def show_progress(name: str, as_lines: bool = False) -> closing[ProgressDisplay]:
    """Return what shows the progress of the run `name` on stderr while it is open.

    as_lines: lines of text also on a terminal, where only one table can be shown at a time.
    """
    console = None
    if not as_lines and sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from numbench.core.safe_console import SafeConsole

        console = SafeConsole(stderr=True)
    return closing(ProgressDisplay(name, console))


def print_line(text: str) -> None:
    """Print a line on stderr. If the log is full or its reader gone, the work continues."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class ProgressDisplay:
    """A table on a terminal, redrawn a few times per second, or lines at intervals, and the end."""

    def __init__(self, name: str, console: Console | None = None) -> None:
        """Show nothing yet. console: that of the terminal, None for lines on stderr."""
        self._name, self._live = printable(name), None
        self._latest: RunProgress | None = None
        self._shown: RunProgress | None = None
        self._interval = LOG_INTERVAL_SECONDS
        if console is not None:
            from rich.live import Live

            # stdout may be redirected to a file, so it is left alone.
            self._live = Live(console=console, auto_refresh=False, redirect_stdout=False)
            self._interval = REDRAW_INTERVAL_SECONDS

    def __call__(self, progress: RunProgress) -> None:
        """Show the progress if it is time to."""
        self._latest = progress
        if self._shown is None or progress.seconds - self._shown.seconds >= self._interval:
            self._show(progress)

    def close(self) -> None:
        """Show the final state, and restore the terminal."""
        if self._latest is not None and (self._live or self._latest is not self._shown):
            self._show(self._latest, ended=True)
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()

    def _show(self, progress: RunProgress, ended: bool = False) -> None:
        # A run that is refused ends within the delay, and prints nothing but its error.
        has_results = progress.done > progress.previously_done
        if not has_results and progress.seconds < FIRST_LINE_DELAY_SECONDS:
            return
        self._shown = progress
        if self._live is None:
            now = datetime.now().astimezone().isoformat(" ", timespec="seconds")
            line = printable(progress_line(progress, ended))
            print_line(f"{now} {self._name}: {line}")
            return
        # The terminal may have been closed; the work continues without it.
        with suppress(OSError):
            self._live.start()
            self._live.update(run_view(self._name, progress, ended), refresh=True)


def run_view(name: str, progress: RunProgress, ended: bool = False) -> RenderableType:
    """Return what a terminal shows of a run: the heading, a row per task, and the footer."""
    from rich.console import Group
    from rich.text import Text

    # Each part stays whole.
    footer = (part.replace(" ", "\N{NO-BREAK SPACE}") for part in _footer(progress, ended))
    return Group(Text(name, style="bold"), _table(progress, ended), Text(SEPARATOR.join(footer)))


def _table(progress: RunProgress, ended: bool) -> RenderableType:
    """Return a row per task and one for all.

    How many items a measurement takes is not known before its end.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    table = Progress(
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        *([] if progress.horizons else [BarColumn(bar_width=16)]),
        TextColumn("{task.fields[values]}"),
        auto_refresh=False,
    )
    is_open = bool(progress.horizons) and not ended
    counts = {task.task: task for task in (*progress.tasks, progress.overall)}
    for name in dict.fromkeys((*progress.horizons, *counts)):
        task = counts.get(name, TaskProgress(name))
        table.add_task(
            TASKS[name].display if name in TASKS else "All",
            total=None if is_open else task.total,
            completed=task.done,
            start=not is_open,
            values=progress.horizons.get(name) or SEPARATOR.join(_values(task)),
        )
    return table.get_renderable()


def progress_line(progress: RunProgress, ended: bool = False) -> str:
    """Return the progress as one line of text; estimates are omitted once the run has ended."""
    overall = progress.overall
    count = f"{overall.done:,}/{overall.total:,} done"
    parts = [f"{overall.answered:,} answered" if progress.horizons else count]
    return SEPARATOR.join((*parts, *_values(overall), *_footer(progress, ended)))


def _values(task: TaskProgress) -> list[str]:
    """Return what is known of the answers to a task."""
    values = []
    if task.scored:
        values.append(f"{_percent(task)} correct")
    if task.tokens_per_answer is not None:
        values.append(f"{task.tokens_per_answer:,.0f} tokens each")
    if task.cost is not None:
        digits = 4 if task.cost < 10 else 2
        values.append(f"{'≥ ' if task.unknown_costs else ''}${task.cost:,.{digits}f}")
    return values


def _footer(progress: RunProgress, ended: bool) -> list[str]:
    """Return what concerns all tasks together, the most important first."""
    horizons = progress.horizons
    ended = ended or (progress.done == progress.total and not horizons)
    remaining = None if ended or horizons else progress.remaining_seconds
    limit, pause = (0, 0.0) if ended else (progress.concurrency_limit, progress.pause_seconds)
    errors, failure = progress.overall.errors, printable(" ".join(progress.last_failure.split()))
    is_long = len(failure) > _MAX_FAILURE_CHARACTERS
    parts = (
        horizons and f"{progress.complete} of {len(horizons)} tasks complete",
        progress.note,
        progress.rate and f"{60 * progress.rate:,.0f} answers/min",
        f"{format_duration(progress.seconds)} elapsed",
        remaining is not None and f"{format_duration(remaining)} remaining",
        f"{progress.retries:,} {'retry' if progress.retries == 1 else 'retries'}",
        errors and f"{errors:,} failed",
        limit and f"{progress.in_flight} in flight, limit {limit}",
        pause and f"paused by the provider for {format_duration(max(pause, 1.0))}",
        progress.previously_done and f"{progress.previously_done:,} done earlier",
        failure and f"last failure: {failure[:_MAX_FAILURE_CHARACTERS]}{'…' * is_long}",
    )
    return [str(part) for part in parts if part]


def _percent(task: TaskProgress) -> str:
    """Return the accuracy; `100%` only if all scored answers are correct, `0%` if none is."""
    accuracy = task.accuracy or 0.0
    if accuracy in (0.0, 1.0):
        return f"{accuracy:.0%}"
    return f"{min(max(100 * accuracy, 0.1), 99.9):.1f}%"


def format_duration(seconds: float) -> str:
    """Return seconds as `0:05`, `12:30` or `4:00:12`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
