"""The committed page of problem sizes is the one that the paper's responses give."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.horizon.__main__ import RESULTS, read_responses, render
from tests.studies.files import assert_is_committed

pytestmark = pytest.mark.heavy
ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_reproduced(paper_results: Path) -> None:
    assert_is_committed(render(read_responses(paper_results)), ROOT / RESULTS)
