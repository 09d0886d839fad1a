from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def default_streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stream as for users: other servers than the providers' own are asked without."""
    monkeypatch.delenv("NUMBENCH_STREAM", raising=False)
