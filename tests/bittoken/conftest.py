"""Fixtures of the tests of the small models."""

import pytest


@pytest.fixture
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels are found from an eighth of the usual attempts, which take most of the time."""
    monkeypatch.setattr("bittoken.data._REFERENCE_ATTEMPTS", 256)
