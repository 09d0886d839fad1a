"""The committed page of horizons is the one that the study's files give."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.horizon_study.__main__ import RESULTS, render
from experiments.horizon_study.responses import read_responses
from tests.experiments.outcome_examples import assert_is_committed

pytestmark = pytest.mark.heavy


def test_the_committed_page_is_reproduced(paper_results: Path) -> None:
    root = Path(__file__).parents[2]
    assert_is_committed(render(read_responses(paper_results)), root / RESULTS)
