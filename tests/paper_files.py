"""The study's raw files, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "NUMBENCH_PAPER_RESULTS"


@pytest.fixture(scope="session")
def paper_results() -> Path:
    """The folder of the study's raw files; the test is skipped where nobody has named it."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(
            f"needs the study's raw files: clone its repository and set {VARIABLE} to the folder "
            "that holds *_test_500_shuffle*.csv"
        )
    return Path(folder)
