"""Fixtures that all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from tests.paper_files import paper_results

# As many tests run at once as there are cores; read when torch is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

__all__ = ["paper_results"]

PATIENCE = 300
"""Seconds after which a test counts as hanging."""


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """A test that waits for ever fails instead."""

    def bark(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"the test hung for {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
