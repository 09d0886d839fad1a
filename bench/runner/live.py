"""How a run shows where it stands: a live table on a terminal, sparse lines in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bench.errors import printable
from bench.runner.progress import Progress, TaskProgress, Watch
from bench.screen import DOT, NONE, Drawing, clock, packed, terminal
from bench.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

LOG_SECONDS = 30.0
_SILENT = 2.0
"""Seconds in which a log waits for something to say: a run that is refused ends sooner."""

_SLOW = 0.1
"""Items per second below which a rate is told per minute."""

_SHORTEST_BAR = 8


def title(model: str, level: str, dataset: str) -> str:
    """What a run is called where it is shown."""
    return printable(f"{model} · reasoning {level} · {dataset}")


@contextmanager
def display(name: str) -> Iterator[Watch]:
    """A watcher that shows the run `name` on stderr, in a way that fits where stderr goes."""
    console = terminal()
    screen = Log(name) if console is None else Screen(name, Drawing(console))
    try:
        yield screen.watch
    finally:
        screen.close()


class Log:
    """One line now and then, the first when something has come, the last at the end."""

    def __init__(self, name: str, seconds: float = LOG_SECONDS) -> None:
        """At most one line in `seconds`."""
        self._name, self._seconds = name, seconds
        self._now: Progress | None = None
        self._said: Progress | None = None

    def watch(self, now: Progress) -> None:
        """Hear where the run stands."""
        self._now = now
        if self._said is None and now.done == now.before and now.seconds < _SILENT:
            return
        if self._said is None or now.seconds - self._said.seconds >= self._seconds:
            self._say(now)

    def close(self) -> None:
        """Say how it ended."""
        now, said = self._now, self._said
        if now is not None and now is not said and (said or now.done > now.before):
            self._say(now, ended=True)

    def _say(self, now: Progress, ended: bool = False) -> None:
        self._said = now
        print(f"{self._name}: {line(now, ended)}", file=sys.stderr, flush=True)


class Screen:
    """A table on a terminal that is redrawn a few times a second and stays at the end."""

    def __init__(self, name: str, drawing: Drawing) -> None:
        """Nothing is drawn before there is something to see."""
        self._name, self._drawing = name, drawing
        self._now: Progress | None = None

    def watch(self, now: Progress) -> None:
        """Hear where the run stands."""
        self._now = now
        self._drawing.draw(View(self._name, now), now.seconds)

    def close(self) -> None:
        """Leave the table as it ended, and the terminal as it was."""
        now = self._now
        self._drawing.end(None if now is None else View(self._name, now, ended=True))


class View(NamedTuple):
    """What `Screen` shows: fits the width it is given, and drops the tasks where it is too low."""

    name: str
    now: Progress
    ended: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The heading, a row for each task and one for all, and what else there is to say."""
        from rich.text import Text

        width = options.max_width
        heading = Text(self.name, style="bold", no_wrap=True, overflow="ellipsis")
        said = packed(_footer(self.now, self.ended), width)
        # The heading, the names of the columns, the row of all, and where the cursor stands.
        lines = len(self.now.tasks) + len(said) + 4
        low = not self.ended and lines > console.size.height
        yield heading
        yield _table(self.now, width, only_whole=low)
        for text in said:
            yield Text(text, no_wrap=True, overflow="ellipsis")


def line(now: Progress, ended: bool = False) -> str:
    """All of `now` in one line of text; what is still awaited only where it has not `ended`."""
    whole = now.whole
    parts = [f"{whole.done:,}/{whole.total:,}"]
    if whole.accuracy is not None:
        parts.append(f"{whole.accuracy:.1%} right of {whole.judged:,}")
    if whole.generated is not None:
        parts.append(f"{whole.generated:,} tokens generated")
    if whole.cost is not None:
        parts.append(_cost(whole))
    return DOT.join((*parts, *_footer(now, ended or now.done == now.total)))


def _table(now: Progress, width: int, only_whole: bool) -> Table:
    """The tasks and their sum, with as many columns as `width` characters hold."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    bar = min(20, width - 66)
    table = Table(box=None, pad_edge=False, padding=(0, 2 if width >= 72 else 1, 0, 0))
    table.add_column("Task", no_wrap=True)
    table.add_column("Done", justify="right", no_wrap=True)
    if bar >= _SHORTEST_BAR:
        table.add_column("", width=bar)
    columns = [
        (name, figure)
        for name, figure, needs in _FIGURES
        if width >= needs and (now.judging or figure is not _accuracy)
    ]
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for task in (*(() if only_whole else now.tasks), now.whole):
        name = TASKS[task.task].display if task.task in TASKS else "All"
        shown = [ProgressBar(task.total, task.done)] if bar >= _SHORTEST_BAR else []
        figures = [figure(task) for _, figure in columns]
        style = "bold" if name == "All" else ""
        table.add_row(name, f"{task.done:,}/{task.total:,}", *shown, *figures, style=style)
    return table


def _footer(now: Progress, ended: bool) -> list[str]:
    """What is to be said of all tasks together, in order of weight."""
    errors = now.whole.errors
    rate = now.mean_rate if ended else now.rate
    parts = [now.note] if now.note else []
    parts += [_speed(rate)] if rate else []
    parts.append(f"{clock(now.seconds)} gone")
    if now.left is not None and not ended:
        parts.append(f"{clock(now.left)} left")
    parts.append(f"{now.retries:,} retries")
    if errors:
        parts.append(f"{errors:,} failed")
    if now.asked_for and not ended:
        most = "" if now.allowed == now.asked_for else f", {now.asked_for} asked for"
        parts.append(f"{now.in_flight} of {now.allowed} in flight{most}")
    if now.held and not ended:
        parts.append(f"held back by the provider for {clock(max(now.held, 1.0))}")
    if now.before:
        parts.append(f"{now.before:,} from before")
    return parts


def _accuracy(task: TaskProgress) -> str:
    return NONE if task.accuracy is None else f"{task.accuracy:.1%} of {task.judged:,}"


def _tokens(task: TaskProgress) -> str:
    tokens = task.tokens_per_answer
    return NONE if tokens is None else f"{tokens:,.0f}"


def _cost(task: TaskProgress) -> str:
    """US dollars; with a sign that there is more where some answers' cost is unknown."""
    if task.cost is None:
        return NONE
    return f"{'≥ ' if task.unpriced else ''}${task.cost:,.{4 if task.cost < 10 else 2}f}"


def _speed(rate: float) -> str:
    return f"{rate:,.1f} items/s" if rate >= _SLOW else f"{rate * 60:.1f} items/min"


_FIGURES: tuple[tuple[str, Callable[[TaskProgress], str], int], ...] = (
    ("Exact match", _accuracy, 48),
    ("Tokens/item", _tokens, 60),
    ("Cost", _cost, 34),
)
"""Columns that may be left out, with the width of terminal from which they are shown."""
