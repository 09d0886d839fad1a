"""Reports of runs on integers of few bits."""

from __future__ import annotations

from pathlib import Path

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.reporting import report
from numbench.runner import run
from numbench.runner.spec import RunSpec


def test_published_scores_are_shown_only_beside_comparable_questions(tmp_path: Path) -> None:
    folders = []
    for bits in (8, None):
        settings = DatasetSettings(f"bits{bits}", ("addition",), size=10, seed=3, max_bits=bits)
        data = generate(settings, tmp_path / settings.name).dataset
        out = tmp_path / f"run{bits}"
        folders.append(run(RunSpec("baseline/float64", dataset=data.path, out=out)).path)
    short, both = report(folders[:1], out=tmp_path / "a"), report(folders, out=tmp_path / "b")
    assert not short.published and both.published
    table = (tmp_path / "a/tables/log_smape.md").read_text()
    assert "integers of at most 8 bits (" in table and "GPT 5" not in table
