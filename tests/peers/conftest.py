from __future__ import annotations

import pytest

from numbench.models import hosted_providers


@pytest.fixture(autouse=True)
def default_streaming(scripted_servers_stream: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stream as for users: other servers than the providers' own are asked without."""
    monkeypatch.setattr(hosted_providers, "STREAMS_FROM_OTHER_SERVERS", False)
