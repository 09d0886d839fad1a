"""The small models that come with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.models import open_model
from bench.paths import resource
from bench.runner import run
from bench.runner.spec import RunSpec
from bench.scoring import score_run, summarize
from bench.shipped import checkpoint_folder, shipped


def test_a_name_is_the_model_that_comes_along_and_a_path_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    assert shipped() == ["small"]
    assert checkpoint_folder("small") == resource("checkpoints") / "small"
    assert checkpoint_folder("./small").resolve() == tmp_path / "small"
    assert checkpoint_folder("~/small") == Path.home() / "small"


def test_its_answers_are_right_where_its_card_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 100 other items of up to four digits it does far better than guessing would."""
    monkeypatch.chdir(tmp_path)
    settings = Settings(name="other", tasks=("minmax", "interval"), size=100, seed=77, max_digits=4)
    generate(settings, tmp_path / "datasets/other")
    run(RunSpec("checkpoint/small", dataset="other", out=tmp_path / "run"))
    cells = summarize(score_run(tmp_path / "run"))
    assert all(cell.counted == 100 for cell in cells.values())
    assert (cells["minmax"].score or 0) > 50 and (cells["interval"].score or 0) > 40


def test_it_bears_a_name_that_says_whose_it_is() -> None:
    assert open_model("checkpoint/small").about.display == "numbench small"
