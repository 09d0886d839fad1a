"""Fixtures for runs against a scripted server."""

from pathlib import Path

import pytest

from tests.support.runs import KEY, small_dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return small_dataset(tmp_path / "data", 5)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "OPENROUTER", "GEMINI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
