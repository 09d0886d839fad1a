"""The committed page of `numbench forensics` follows from the study's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbench.dataset.store import Dataset
from numbench.forensics_page import forensics

COMMITTED = Path(__file__).parents[2] / "results" / "forensics"
FILES = ("README.md", "alternatives.csv", "matches.csv")
REGENERATE = "run `numbench forensics` on the study's files and commit its output"


@pytest.mark.heavy
def test_committed_page_is_reproduced_from_the_files(paper_results: Path, tmp_path: Path) -> None:
    if not COMMITTED.is_dir():
        pytest.skip("the page is part of a checkout, not of an installed package")
    forensics([paper_results], tmp_path, lambda _: None)
    page = (COMMITTED / "README.md").read_text(encoding="utf-8")
    dataset = Dataset(tmp_path / "runs" / "dataset").manifest.sha256[:6]
    if f"study@{dataset}" not in page:
        pytest.skip("the committed page is made from other files than the available ones")
    for name in FILES:
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert written == (COMMITTED / name).read_text(encoding="utf-8"), REGENERATE
