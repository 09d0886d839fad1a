"""Running a coroutine to its end, also in a notebook, where an event loop is running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_end(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of a coroutine function.

    It runs in a separate thread if this thread's event loop is running.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main())
    with ThreadPoolExecutor(1, thread_name_prefix="numbench-run") as pool:
        future = pool.submit(lambda: asyncio.run(main()))
        # On Windows a wait without a timeout delays signal handlers to its end.
        while not future.done():
            wait((future,), timeout=0.2)
        return future.result()
