"""Fixtures: a small study and, if available, the study's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbench.rescore.analysis import StudyAnalysis, analyze_study
from tests.rescore.files import small_study


@pytest.fixture
def small(tmp_path: Path) -> StudyAnalysis:
    """The small study, analyzed."""
    return read(small_study(tmp_path / "csv"), tmp_path / "runs")


@pytest.fixture(scope="session")
def whole(paper_results: Path, tmp_path_factory: pytest.TempPathFactory) -> StudyAnalysis:
    """The study's own files, analyzed once."""
    return read(paper_results, tmp_path_factory.mktemp("rescore"))


def read(folder: Path, runs: Path) -> StudyAnalysis:
    """Analyze a study and discard its messages."""
    return analyze_study(folder, runs, lambda _: None)
