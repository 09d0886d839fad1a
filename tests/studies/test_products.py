"""The page about products of 8-bit integers comes out of its stored logs."""

from __future__ import annotations

from pathlib import Path

from studies.products.__main__ import RESULTS, render
from tests.studies.files import assert_is_committed

ROOT = Path(__file__).parents[2]


def test_the_committed_page_comes_out_of_the_stored_logs() -> None:
    assert_is_committed(render(ROOT / RESULTS), ROOT / RESULTS)
