"""A training that a person attends: it shows where it stands, and stops when told to."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from bench.bittoken.training.live import display
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.training.run import Outcome, train


class Interrupted(Exception):
    """A signal ended a training early; all that it did is saved."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def attend(recipe: Recipe, folder: Path, minutes: float | None = None) -> Outcome:
    """`train`, shown on stderr. Interrupted where a signal ended it, after it was saved."""
    asked = threading.Event()
    with _stopped_by_signals(asked), display(recipe, asked.is_set) as watch:
        outcome = train(recipe, folder, watch, asked.is_set, minutes)
    if asked.is_set() and not outcome.ended:
        raise Interrupted(outcome)
    return outcome


@contextmanager
def _stopped_by_signals(asked: threading.Event) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP ask to stop; a SIGINT after one of them ends at once."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread hears signals.
        yield
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        asked.set()

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, on_signal) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
