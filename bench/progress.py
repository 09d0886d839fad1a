"""How a long run shows where it stands: a live line on a terminal, sparse lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_LOG_SECONDS = 30.0
_LIVE_SECONDS = 0.1


class Progress(NamedTuple):
    """Where a run stands. `total` counts the items to be asked now, not those answered before.

    Tokens and cost (US dollars) are sums over what providers reported, None where nothing was.
    `seconds` have passed since the start.
    """

    total: int
    answered: int
    errors: int
    retries: int
    tokens: int | None
    cost: float | None
    seconds: float

    @property
    def done(self) -> int:
        """Items that need no more asking."""
        return self.answered + self.errors

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end at this rate, None while there is no rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


Watch = Callable[[Progress], None]


def line(now: Progress) -> str:
    """All of `now` in one line of text."""
    parts = [f"{now.done}/{now.total}", f"{now.rate:.1f}/s"]
    if now.tokens is not None:
        parts.append(f"{now.tokens:,} tokens")
    if now.cost is not None:
        parts.append(f"${now.cost:.4f}")
    if now.errors:
        parts.append(f"{now.errors} errors")
    if now.retries:
        parts.append(f"{now.retries} retries")
    if now.left is not None and now.done < now.total:
        parts.append(f"{_clock(now.left)} left")
    return " · ".join(parts)


@contextmanager
def display(name: str) -> Iterator[Watch]:
    """A watcher that shows the run `name` on stderr, in a way that fits where stderr goes."""
    if sys.stderr.isatty():
        with _live(name) as watch:
            yield watch
    else:
        yield _log(name)


@contextmanager
def _live(name: str) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
    with Bars(*columns, console=Console(stderr=True), refresh_per_second=4) as bars:
        bar = bars.add_task(name.replace("[", r"\["), total=None, said="")
        sparse = _sparse(
            lambda now: bars.update(bar, total=now.total, completed=now.done, said=line(now)),
            _LIVE_SECONDS,
        )
        yield sparse


def _log(name: str) -> Watch:
    return _sparse(
        lambda now: print(f"{name}: {line(now)}", file=sys.stderr, flush=True), _LOG_SECONDS
    )


def _sparse(watch: Watch, seconds: float) -> Watch:
    """`watch`, called at most once in `seconds`, and always at the end."""
    last = time.monotonic()

    def called(now: Progress) -> None:
        nonlocal last
        if now.done >= now.total or time.monotonic() - last >= seconds:
            last = time.monotonic()
            watch(now)

    return called


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
