"""The committed comparison: its runs, their order, and its dataset."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from bittoken.network import Network
from bittoken.vocabulary import Vocabulary
from experiments.comparison import Comparison, read_comparison
from experiments.table_layout import read_layout
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import open_dataset
from numbench.tasks import PAPER_TASKS
from tests.experiments.tiny import ROOT

ENCODINGS = ("subword", "digit", "xval", "fone", "bittoken")
SHORT = "dbec1130d48c2f223212939d7ce2f937938ef2980ab83aec2f0e774d22770c6a"


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    monkeypatch.chdir(ROOT)
    return read_comparison()


def test_runs_are_in_order_of_priority(comparison: Comparison) -> None:
    names = [run.name for run in comparison.runs]
    assert names[:5] == [f"multi-{encoding}-s1" for encoding in ENCODINGS]
    assert names[5:8] == [f"ablation-{w}-s1" for w in ("no-curriculum", "no-reciprocal", "base10")]
    assert names[8:53] == [f"solo-{e}-{task}-s1" for task in PAPER_TASKS for e in ENCODINGS]
    groups = [group for group, _ in groupby(name.split("-")[0] for name in names)]
    assert groups == ["multi", "ablation", "solo", "ablation", "multi"]
    assert len(names) == 64


def test_runs_share_network_and_data_and_have_one_of_two_budgets(comparison: Comparison) -> None:
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

    for model, recipe in {str(run.recipe.model): run.recipe for run in comparison.runs}.items():
        with torch.device("meta"):
            network = Network(recipe.config(len(Vocabulary(recipe.model.encoding))))
        assert list(network.parameters()), model


def test_tables_and_declaration_have_the_same_runs(comparison: Comparison) -> None:
    shown = {
        name
        for layout in read_layout()
        for column in layout.columns
        for task in layout.tasks
        if (name := column.run_name(task))
    }
    declared = {run.name.rpartition("-s")[0] for run in comparison.runs}
    assert shown == declared


def test_dataset_is_the_released_one() -> None:
    data = open_dataset(ROOT / "datasets" / "short")
    assert data.manifest.sha256 == SHORT
    assert data.manifest.settings["max_digits"] == 4
    assert {len(items) for items in data.by_task.values()} == {500}


def test_dataset_is_the_generators_output(tmp_path: Path) -> None:
    generate(DatasetSettings(name="short", max_digits=4), tmp_path)
    for committed in sorted((ROOT / "datasets" / "short").glob("*.jsonl")):
        assert (tmp_path / committed.name).read_bytes() == committed.read_bytes()
