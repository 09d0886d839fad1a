"""The trainings of record begin again as their logs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.test_follow import begins_as_logged
from tests.experiments.tiny import ROOT

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize(
    "folder",
    ["checkpoints/small", *(f"results/trained/multi-{e}-s1" for e in ("digit", "subword", "fone"))],
)
def test_they_begin_as_their_logs_say(folder: str, tmp_path: Path) -> None:
    begins_as_logged(ROOT / folder, tmp_path)
