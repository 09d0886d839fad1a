"""How work that goes on shows where it stands on a terminal: drawn over itself, then left there."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

DOT, NONE = " · ", "–"
SECONDS = 0.25


def terminal() -> Console | None:
    """Standard error where it is a terminal that can be drawn on, else None."""
    if not sys.stderr.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        return None
    from rich.console import Console

    return Console(stderr=True, highlight=False)


class Drawing:
    """What is drawn over itself a few times a second, until it stays as it ended."""

    def __init__(self, console: Console, seconds: float = SECONDS) -> None:
        """Drawn at most once in `seconds`."""
        self._console, self._seconds = console, seconds
        self._drawn = 0.0
        self._live: Live | None = None
        self._lost = False

    def draw(self, view: RenderableType, gone: float, at_once: bool = False) -> None:
        """Show `view` where it is time to, or `at_once`. gone: seconds since the work began."""
        if self._live is None or at_once or gone - self._drawn >= self._seconds:
            self._drawn = gone
            self._show(view)

    def end(self, view: RenderableType | None) -> None:
        """Leave `view`, if there is one, and the terminal as it was."""
        if view is not None:
            self._show(view)
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()

    def _show(self, view: RenderableType) -> None:
        if self._lost:
            return
        try:
            if self._live is None:
                from rich.live import Live

                # Standard output may lead into a file; nothing but the view goes to stderr.
                self._live = Live(
                    view, console=self._console, auto_refresh=False, redirect_stdout=False
                )
                self._live.start()
            self._live.update(view, refresh=True)
        except OSError:
            # The terminal has gone. The work goes on without it.
            self._lost = True


def packed(parts: Sequence[str], width: int) -> list[str]:
    """`parts` with dots between them, on as few lines of `width` as hold them in their order."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(DOT) + len(part) <= width:
            lines[-1] += DOT + part
        else:
            lines.append(part)
    return lines


def clock(seconds: float) -> str:
    """`0:05`, `12:30`, `4:00:12`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
