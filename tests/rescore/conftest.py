"""The small study and, where they are at hand, the study's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.rescore.study import Study, read_study
from tests.rescore.files import small_study


@pytest.fixture
def small(tmp_path: Path) -> Study:
    """The small study, read."""
    return read(small_study(tmp_path / "csv"), tmp_path / "runs")


@pytest.fixture(scope="session")
def whole(paper_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study's own files, read once."""
    return read(paper_results, tmp_path_factory.mktemp("rescore"))


def read(folder: Path, runs: Path) -> Study:
    """A study whose messages nobody hears."""
    return read_study(folder, runs, lambda _: None)
