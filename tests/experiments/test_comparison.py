"""The committed comparison: what it declares, in which order, and what it asks."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from bench.bittoken.network import Network
from bench.bittoken.vocabulary import Vocabulary
from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.dataset.store import open_dataset
from bench.tasks import TASKS
from experiments.declared import Comparison, read_comparison
from experiments.layout import read_layout
from tests.experiments.tiny import ROOT

ENCODINGS = ("subword", "digit", "xval", "fone", "bittoken")
SHORT = "dbec1130d48c2f223212939d7ce2f937938ef2980ab83aec2f0e774d22770c6a"


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    monkeypatch.chdir(ROOT)
    return read_comparison()


def test_the_runs_come_in_order_of_priority(comparison: Comparison) -> None:
    names = [run.name for run in comparison.runs]
    assert names[:5] == [f"multi-{encoding}-s1" for encoding in ENCODINGS]
    assert names[5:8] == [f"ablation-{w}-s1" for w in ("no-curriculum", "no-reciprocal", "base10")]
    assert names[8:53] == [f"solo-{e}-{task}-s1" for task in TASKS for e in ENCODINGS]
    groups = [group for group, _ in groupby(name.split("-")[0] for name in names)]
    assert groups == ["multi", "ablation", "solo", "ablation", "multi", "ablation"]
    assert len(names) == 73


def test_all_runs_share_trunk_and_data_and_have_one_of_two_budgets(comparison: Comparison) -> None:
    base = comparison.runs[0].recipe
    for run in comparison.runs:
        training, model = run.recipe.training, run.recipe.model
        assert training.tokens == (1_500_000 if len(run.recipe.data.tasks) == 1 else 5_000_000)
        assert training.batch_tokens == base.training.batch_tokens
        assert (model.layers, model.heads, model.width) == (3, 4, 256)
        assert run.recipe.data.digits == 4
        assert run.recipe.optimizer == base.optimizer
        assert run.name.endswith(f"-s{training.seed}")
        assert run.recipe.name == run.name


def test_every_run_can_be_built(comparison: Comparison) -> None:
    import torch

    for run in comparison.runs:
        with torch.device("meta"):
            Network(run.recipe.config(len(Vocabulary(run.recipe.model.encoding))))


def test_every_run_that_a_table_shows_is_declared_and_the_other_way_round(
    comparison: Comparison,
) -> None:
    shown = {
        name
        for layout in read_layout()
        for column in layout.columns
        for task in layout.tasks
        if (name := column.run_name(task))
    }
    declared = {run.name.rpartition("-s")[0] for run in comparison.runs}
    assert shown - declared == {"ablation-layer-norm"}
    assert declared - shown == set()


def test_the_dataset_is_what_the_generator_writes(tmp_path: Path) -> None:
    data = open_dataset(ROOT / "datasets" / "short")
    assert data.manifest.sha256 == SHORT
    assert sum(len(items) for items in data.by_task.values()) == 4500
    again = generate(Settings(name="short", max_digits=4), tmp_path / "short")
    assert again.dataset.manifest == data.manifest
