"""How a training shows where it stands: a live table on a terminal, sparse lines in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.bittoken.training.log import Line
from bench.bittoken.training.progress import Meter, Now
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.training.run import Watch
from bench.bittoken.training.trainer import StepResult, Trainer
from bench.bittoken.training.wording import display_name, percent, short
from bench.errors import printable
from bench.screen import DOT, NONE, Drawing, clock, packed, terminal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

LOG_SECONDS = 30.0
_STOPPING = "stopping after this step and saving; one more Ctrl-C ends at once"


@contextmanager
def display(recipe: Recipe, stopping: Callable[[], bool]) -> Iterator[Watch]:
    """A watcher that shows the training on stderr, in a way that fits where stderr goes.

    stopping: whether the training has been asked to stop. Of several processes only one speaks.
    """
    if os.environ.get("RANK", "0") != "0":
        yield Watch()
        return
    meter, console = Meter(recipe), terminal()
    shown = Log(recipe.name) if console is None else Screen(recipe.name, Drawing(console))

    def measured(line: Line) -> None:
        meter.heard(line)
        shown.watch(meter.now, stopping())

    def step(trainer: Trainer, done: StepResult) -> None:
        meter.stepped(trainer, done)
        shown.watch(meter.now, stopping())

    try:
        yield Watch(step, measured)
    finally:
        shown.close()


class Log:
    """One line now and then, the first when a step is done, the last at the end."""

    def __init__(self, name: str, seconds: float = LOG_SECONDS) -> None:
        """At most one line in `seconds`."""
        self._name, self._seconds = name, seconds
        self._now: Now | None = None
        self._said: Now | None = None
        self._stopping = self._begun = False

    def watch(self, now: Now, stopping: bool = False) -> None:
        """Hear where the training stands."""
        self._now = now
        if not self._begun:
            self._begun = True
            self._print(DOT.join(_about(now)))
        elif now.speed is not None and (
            self._said is None or now.seconds - self._said.seconds >= self._seconds
        ):
            self._said = now
            self._print(line(now))
        if stopping and not self._stopping:
            self._stopping = True
            self._print(_STOPPING)

    def close(self) -> None:
        """Say how it ended."""
        if self._now is not None and self._now is not self._said and self._now.speed is not None:
            self._said = self._now
            self._print(line(self._now, ended=True))

    def _print(self, text: str) -> None:
        print(f"{printable(self._name)}: {printable(text)}", file=sys.stderr, flush=True)


class Screen:
    """A table on a terminal that is redrawn a few times a second and stays at the end."""

    def __init__(self, name: str, drawing: Drawing) -> None:
        """Nothing is drawn before there is something to see."""
        self._name, self._drawing = name, drawing
        self._now: Now | None = None

    def watch(self, now: Now, stopping: bool = False) -> None:
        """Hear where the training stands."""
        self._now = now
        self._drawing.draw(View(self._name, now, stopping), now.seconds, at_once=stopping)

    def close(self) -> None:
        """Leave the table as it ended, and the terminal as it was."""
        now = self._now
        self._drawing.end(None if now is None else View(self._name, now, ended=True))


class View(NamedTuple):
    """What `Screen` shows: fits the width it is given, and drops the tasks where it is too low."""

    name: str
    now: Now
    stopping: bool = False
    ended: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The heading, a bar, how it goes, a row for each task, and the last validation."""
        from rich.progress_bar import ProgressBar
        from rich.segment import Segment
        from rich.text import Text

        now, width = self.now, options.max_width
        above = packed([*_reached(now), *_pace(now, self.ended)], width)
        below = packed([_STOPPING] if self.stopping else _validated(now), width)
        heading = DOT.join([self.name, *_about(now)])
        yield Text(printable(heading), style="bold", no_wrap=True, overflow="ellipsis")
        yield ProgressBar(now.steps, now.step, width=width)
        yield Segment.line()
        for text in above:
            yield Text(text, no_wrap=True, overflow="ellipsis")
        # Heading, bar, the names of the columns, and where the cursor stands.
        lines = len(now.losses) + len(above) + len(below) + 4
        if now.losses and (self.ended or lines <= console.size.height):
            yield _table(now, width)
        for text in below:
            yield Text(text, no_wrap=True, overflow="ellipsis")


def line(now: Now, ended: bool = False) -> str:
    """All of `now` in one line of text; what is still awaited only where it has not `ended`."""
    scores = [
        f"{display_name(task)} {percent(found['score'])}"
        for task, found in now.measured.get("tasks", {}).items()
    ]
    said = [*_reached(now), *_pace(now, ended)]
    return DOT.join([*said, ", ".join(scores)] if scores else said)


def _about(now: Now) -> list[str]:
    about = now.about
    if not about:
        return []
    processes = about["processes"]
    device = about["device"] if processes == 1 else f"{processes} × {about['device']}"
    begun = [f"goes on after step {about['step']:,}"] if about["step"] else []
    return [*begun, f"{short(about['parameters'])} parameters", device]


def _reached(now: Now) -> list[str]:
    return [
        f"{short(now.tokens)} of {short(now.budget)} tokens",
        f"step {now.step:,} of {now.steps:,}",
    ]


def _pace(now: Now, ended: bool) -> list[str]:
    parts = []
    if now.left is not None and not ended:
        parts.append(f"{clock(now.left)} left")
    parts.append(f"{clock(now.seconds)} gone")
    if now.speed is not None:
        parts.append(f"{short(now.speed)} tokens/s")
    if now.used is not None:
        parts.append(f"{now.used:.0%} of the card's peak")
    if now.loss is not None:
        parts += [f"loss {now.loss:.3f}", f"learning rate {now.learning:.0%} of peak"]
    return parts


def _validated(now: Now) -> list[str]:
    if not now.measured:
        return []
    parts = [f"validated at step {now.measured['step']:,}"]
    parts.append(f"harmonic mean {percent(now.measured['harmonic_mean'])}")
    if now.best is not None and now.best_step:
        parts.append(f"best {percent(now.best)} at step {now.best_step:,}")
    return parts


class _Row(NamedTuple):
    """A task, its loss, what its last validation found, its share and its chance level."""

    task: str
    loss: float
    found: dict[str, Any]
    share: float | None
    chance: float | None


_FIGURES: tuple[tuple[str, Callable[[_Row], str], int], ...] = (
    ("Loss", lambda row: f"{row.loss:.3f}", 34),
    ("Score", lambda row: percent(row.found.get("score")), 0),
    ("Exact", lambda row: percent(row.found.get("exact")), 0),
    ("Chance", lambda row: percent(row.chance) if row.chance else NONE, 42),
    ("Share", lambda row: percent(row.share), 50),
    ("Open levels", lambda row: _levels(row.found), 64),
    ("Score there", lambda row: percent(row.found.get("opened_score")), 76),
)
"""Columns, with the width of terminal from which they are shown."""


def _table(now: Now, width: int) -> Table:
    """The tasks, with as many columns as `width` characters hold."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2 if width >= 72 else 1, 0, 0))
    table.add_column("Task", no_wrap=True)
    columns = [(name, figure) for name, figure, needs in _FIGURES if width >= needs]
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    found, shares = now.measured.get("tasks", {}), now.measured.get("ratio", {})
    for task, loss in now.losses.items():
        chance = now.about.get("chance", {}).get(task)
        row = _Row(task, loss, found.get(task, {}), shares.get(task), chance)
        table.add_row(display_name(task), *(figure(row) for _, figure in columns))
    return table


def _levels(found: dict[str, Any]) -> str:
    if "frontier" not in found:
        return NONE
    return f"{found['frontier'] + 1} of {found['levels']}"
