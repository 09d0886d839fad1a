"""The bundled small models."""

from __future__ import annotations

from pathlib import Path

import pytest

import bittoken
from bittoken.bundled_checkpoints import bundled_checkpoint_names, checkpoint_folder
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.models import open_model
from numbench.runner import run
from numbench.runner.spec import RunSpec
from numbench.scoring import score_run, summarize


def test_a_name_is_a_bundled_model_and_a_path_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    assert bundled_checkpoint_names() == ["small"]
    assert checkpoint_folder("small") == Path(bittoken.__file__).parent / "checkpoints/small"
    assert checkpoint_folder("./small").resolve() == tmp_path / "small"
    assert checkpoint_folder("~/small") == Path.home() / "small"


@pytest.mark.slow
def test_the_bundled_model_answers_most_new_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = ("minmax", "interval", "addition", "multiplication")
    settings = DatasetSettings(name="other", tasks=tasks, size=100, seed=77, max_bits=8)
    generate(settings, tmp_path / "datasets/other")
    run(RunSpec("checkpoint/small", dataset="other", out=tmp_path / "run"))
    cells = summarize(score_run(tmp_path / "run"))
    assert all(cell.counted == 100 for cell in cells.values())
    assert all((cells[task].score or 0) > 75 for task in tasks)


def test_the_bundled_model_has_the_display_name_of_the_project() -> None:
    assert open_model("checkpoint/small").description.display == "numbench small"
