"""Progress of a run on stderr: a live table on a terminal, occasional lines in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from numbench.errors import printable
from numbench.progress_display import (
    NO_VALUE,
    SEPARATOR,
    ProgressFormat,
    format_duration,
    progress_table,
    show_states,
    wrap_parts,
)
from numbench.runner.measurement_live import complete_tasks, measurement_counts, measurement_table
from numbench.runner.progress import ProgressCallback, RunProgress, TaskProgress
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

FIRST_LINE_DELAY_SECONDS = 2.0
"""Seconds without results after which a log prints its first line."""

SLOW_ITEMS_PER_SECOND = 0.1
"""Below this rate, in items per second, the rate is shown per minute."""

MIN_BAR_WIDTH = 8


def run_title(model: str, level: str, dataset: str, variant: str = "") -> str:
    """Return the title of a run in displays. variant: empty for the items as they are."""
    title = f"{model} · reasoning {level} · {dataset}"
    return printable(f"{title} · {variant}" if variant else title)


@contextmanager
def show_progress(name: str, as_lines: bool = False) -> Iterator[ProgressCallback]:
    """Yield a callback that shows the progress of the run `name` on stderr.

    as_lines: lines of text also on a terminal, where only one table can be shown at a time.
    """
    with show_states(name, progress_format(name), as_lines) as show:
        yield show


def progress_format(name: str) -> ProgressFormat[RunProgress]:
    """Return how a run is shown in a log and on a terminal."""
    return ProgressFormat(
        line=progress_line,
        table=lambda progress, ended: RunTable(name, progress, ended),
        # A run that is refused ends within the delay, and prints nothing but its error.
        has_news=lambda progress: (
            progress.done > progress.previously_done or progress.seconds >= FIRST_LINE_DELAY_SECONDS
        ),
    )


class RunTable(NamedTuple):
    """A rich table of a run's progress that fits the terminal.

    Narrow terminals show fewer columns, low ones only the row of all tasks.
    """

    name: str
    progress: RunProgress
    ended: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the heading, a row per task and one for all, and the footer."""
        from rich.text import Text

        width = options.max_width
        parts = _footer(self.progress, self.ended)
        if self.progress.horizons:
            parts.insert(0, complete_tasks(self.progress))
        footer = wrap_parts(parts, width)
        # Heading, column names, the row of all tasks, and the line of the cursor.
        rows = self.progress.horizons or self.progress.tasks
        height = len(rows) + len(footer) + 4
        too_low = not self.ended and height > console.size.height
        yield Text(self.name, style="bold", no_wrap=True, overflow="ellipsis")
        if self.progress.horizons:
            yield measurement_table(self.progress, width, shows_tasks=not too_low)
        else:
            yield _table(self.progress, width, only_overall=too_low)
        for line in footer:
            yield Text(line, no_wrap=True, overflow="ellipsis")


def progress_line(progress: RunProgress, ended: bool = False) -> str:
    """Return the progress as one line of text; estimates are omitted once the run has ended."""
    overall = progress.overall
    if progress.horizons:
        parts = measurement_counts(progress)
    else:
        parts = [f"{overall.done:,}/{overall.total:,} done"]
        if overall.scored:
            parts.append(f"{overall.correct:,}/{overall.scored:,} correct ({_percent(overall)})")
    if overall.generated_tokens is not None:
        parts.append(f"{overall.generated_tokens:,} tokens generated")
    if overall.cost is not None:
        parts.append(_cost(overall))
    ended = ended or (progress.done == progress.total and not progress.horizons)
    return SEPARATOR.join((*parts, *_footer(progress, ended)))


def _table(progress: RunProgress, width: int, only_overall: bool) -> Table:
    """Return a row per task and one for all, with as many columns as fit `width` characters."""
    from rich.progress_bar import ProgressBar

    bar_width = min(20, width - 66)
    has_bar = bar_width >= MIN_BAR_WIDTH
    table = progress_table(width)
    table.add_column("Task", no_wrap=True)
    table.add_column("Done", justify="right", no_wrap=True)
    if has_bar:
        table.add_column("", width=bar_width)
    columns = [
        (name, format_value)
        for name, format_value, min_width in _COLUMNS
        if width >= min_width and (progress.has_scores or format_value is not _accuracy)
    ]
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for row in (*(() if only_overall else progress.tasks), progress.overall):
        is_task = row.task in TASKS
        bar = [ProgressBar(row.total, row.done)] if has_bar else []
        table.add_row(
            TASKS[row.task].display if is_task else "All",
            f"{row.done:,}/{row.total:,}",
            *bar,
            *(format_value(row) for _, format_value in columns),
            style="" if is_task else "bold",
        )
    return table


def _footer(progress: RunProgress, ended: bool) -> list[str]:
    """Return what concerns all tasks together, the most important first."""
    rate = progress.mean_rate if ended else progress.rate
    parts = [progress.note] if progress.note else []
    parts += [_format_rate(rate)] if rate else []
    parts.append(f"{format_duration(progress.seconds)} elapsed")
    # How many items a measurement takes is not known before.
    if progress.remaining_seconds is not None and not ended and not progress.horizons:
        parts.append(f"{format_duration(progress.remaining_seconds)} remaining")
    parts.append(f"{progress.retries:,} {'retry' if progress.retries == 1 else 'retries'}")
    if progress.overall.errors:
        parts.append(f"{progress.overall.errors:,} failed")
    if progress.max_concurrency and not ended:
        parts.append(_in_flight(progress))
    if progress.pause_seconds and not ended:
        pause = format_duration(max(progress.pause_seconds, 1.0))
        parts.append(f"paused by the provider for {pause}")
    if progress.previously_done:
        parts.append(f"{progress.previously_done:,} done earlier")
    return parts


def _in_flight(progress: RunProgress) -> str:
    limit, maximum = progress.concurrency_limit, progress.max_concurrency
    lowered = "" if limit == maximum else f" (lowered from {maximum})"
    return f"{progress.in_flight} of {limit} in flight{lowered}"


def _accuracy(task: TaskProgress) -> str:
    return f"{_percent(task)} of {task.scored:,}" if task.scored else NO_VALUE


def _percent(task: TaskProgress) -> str:
    """Return the accuracy; `100 %` only if all scored answers are correct, `0 %` if none is."""
    accuracy = task.accuracy or 0.0
    if accuracy in (0.0, 1.0):
        return f"{accuracy:.0%}".replace("%", " %")
    return f"{min(max(100 * accuracy, 0.1), 99.9):.1f} %"


def _tokens(task: TaskProgress) -> str:
    tokens = task.tokens_per_answer
    return NO_VALUE if tokens is None else f"{tokens:,.0f}"


def _cost(task: TaskProgress) -> str:
    """Return the cost in US dollars, with `≥` if the cost of some answers is unknown."""
    if task.cost is None:
        return NO_VALUE
    return f"{'≥ ' if task.unknown_costs else ''}${task.cost:,.{4 if task.cost < 10 else 2}f}"


def _format_rate(rate: float) -> str:
    return f"{rate:,.1f} items/s" if rate >= SLOW_ITEMS_PER_SECOND else f"{rate * 60:.1f} items/min"


_COLUMNS: tuple[tuple[str, Callable[[TaskProgress], str], int], ...] = (
    ("Exact match", _accuracy, 48),
    ("Tokens/item", _tokens, 60),
    ("Cost", _cost, 34),
)
"""Optional columns, each with the minimum width of the terminal that shows it."""
