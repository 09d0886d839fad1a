"""Stop long work in an orderly way when the process is interrupted or terminated."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


def raise_keyboard_interrupt() -> NoReturn:
    """Raise KeyboardInterrupt, as Python does by default for Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def stop_on_signals(
    on_first: Callable[[], None], on_second: Callable[[], None] = raise_keyboard_interrupt
) -> Iterator[None]:
    """Call `on_first` at the first SIGINT, SIGTERM or SIGHUP within the context.

    After that, every further SIGINT (Ctrl-C) calls `on_second`. Further SIGTERM and SIGHUP have no
    effect: process managers and closing terminals often send them more than once. A signal that
    is ignored stays ignored; `nohup` starts commands with SIGHUP ignored. The callbacks run in the
    main thread, at any point of its code. In other threads, which receive no signals, the context
    does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopping = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if not stopping:
            stopping = True
            on_first()
        elif number == signal.SIGINT:
            on_second()

    previous = {number: signal.getsignal(number) for number in _stop_signals()}
    handled = [number for number, handler in previous.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in handled:
            # None stands for a handler that was not installed from Python.
            signal.signal(number, previous[number] or signal.SIG_DFL)


def _stop_signals() -> list[signal.Signals]:
    """Return the signals that ask a process to stop, as far as the platform has them."""
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]
