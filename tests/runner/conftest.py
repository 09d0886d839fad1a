"""Fixtures of the tests of runs."""

import pytest

from tests.support.run_fixtures import dataset, keys

__all__ = ["dataset", "keys"]


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the first reply nor a change of the progress is waited for a second."""
    monkeypatch.setattr("numbench.runner.throttle._FIRST_REPLY_SECONDS", 0.1)
    monkeypatch.setattr("numbench.runner.workers.PROGRESS_INTERVAL_SECONDS", 0.1)
