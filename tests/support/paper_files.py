"""The study's files, for the tests that need them: raw responses, and outputs of its network."""

import os
from pathlib import Path

import pytest

VARIABLE = "NUMBENCH_PAPER_RESULTS"
OUTPUTS_VARIABLE = "NUMBENCH_REFERENCE_OUTPUTS"


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


@pytest.fixture(scope="session")
def reference_outputs() -> Path:
    """The folder of outputs of the study's network; the test is skipped if it is not set."""
    folder = os.environ.get(OUTPUTS_VARIABLE)
    if not folder:
        pytest.skip(
            'needs outputs of the study\'s network (see docs/bittoken.md, "Checkpoints"): '
            f"set {OUTPUTS_VARIABLE} to their folder"
        )
    return Path(folder)
