"""An event loop whose time passes only in its waits, and then at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class _Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Looks at its files without waiting, and adds the time that it would have waited."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready: list[Any] = super().select(0)
        if not ready:
            if timeout is None:
                raise AssertionError("every task waits for something that never comes")
            self.now += max(timeout, 0.0)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run_simulated(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine; its loop's time starts at 0."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
