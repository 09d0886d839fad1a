"""The exported Hugging Face folder. Loading it needs `pip install datasets`."""

from pathlib import Path
from types import ModuleType

import msgspec
import pyarrow.parquet as pq
import pytest

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import Dataset, open_dataset
from numbench.ecosystem.huggingface import export_huggingface
from numbench.errors import BadInput
from numbench.records import Item
from tests.support.case_tables import each_row

pytestmark = pytest.mark.slow


def loader() -> ModuleType:
    """Import `datasets.load`; `datasets` alone could be this project's folder of that name."""
    return pytest.importorskip("datasets.load", reason="pip install datasets")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported dataset v1."""
    out = tmp_path_factory.mktemp("hub") / "v1"
    export_huggingface(open_dataset("v1"), out)
    return out


def test_load_dataset_returns_the_items(folder: Path, tmp_path: Path) -> None:
    v1 = open_dataset("v1")
    for task in v1.tasks:
        rows = loader().load_dataset(str(folder), task, cache_dir=str(tmp_path))
        assert list(rows) == ["test"]
        assert msgspec.convert(rows["test"].to_list(), list[Item]) == v1.by_task[task]
    names = pytest.importorskip("datasets.inspect", reason="pip install datasets")
    assert names.get_dataset_config_names(str(folder)) == list(v1.tasks)
    # Answers are strings with every digit.
    first = pq.read_table(folder / "addition" / "addition.parquet").to_pylist()[0]
    assert first["answer"] == "0.0669999999995214"
    assert first["operands"] == ["0.067", "0.000000000000478576038343"]


def test_the_paper_s_questions_are_exported_without_sampling_parameters(tmp_path: Path) -> None:
    dataset = open_dataset("paper")
    export_huggingface(dataset, tmp_path)
    for task, items in dataset.by_task.items():
        rows = pq.read_table(tmp_path / task / f"{task}.parquet").to_pylist()
        assert msgspec.convert(rows, list[Item]) == items
    card = (tmp_path / "README.md").read_text()
    assert "Copyright (c) 2026 Linus Kreitner" in (tmp_path / "NOTICE").read_text()
    assert "the paper's own" in card and "None" not in card


def test_card_describes_the_dataset(folder: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="pip install datasets")
    card = hub.DatasetCard.load(folder / "README.md")
    data = card.data.to_dict()
    assert (data["license"], data["language"]) == ("mit", ["en"])
    assert data["task_categories"] == ["question-answering"]
    assert data["size_categories"] == ["1K<n<10K"]
    assert [config["config_name"] for config in data["configs"]] == list(open_dataset("v1").tasks)
    assert open_dataset("v1").manifest.sha256 in card.text
    assert "What is 0.067 - 0.000000000000478576038343?" in card.text


@each_row(__file__, "hub_rows")
def test_all_kinds_of_datasets_are_exported(
    task: str, settings: dict[str, object], description: str, tmp_path: Path
) -> None:
    source = small_dataset(tmp_path / "small", tasks=(task,), **settings)
    export_huggingface(source, tmp_path / "out")
    assert description in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    rows = pq.read_table(tmp_path / "out" / task / f"{task}.parquet").to_pylist()
    assert msgspec.convert(rows, list[Item]) == source.by_task[task]


def small_dataset(folder: Path, **settings: object) -> Dataset:
    defaults = {"name": "small", "tasks": ("mean",), "size": 12}
    return generate(DatasetSettings(**defaults | settings), folder, shard_rows=5)


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_dataset_of_several_files_and_another_split_is_complete(
    file_format: str, tmp_path: Path
) -> None:
    load = loader()
    source = small_dataset(tmp_path / "small", format=file_format, split="val", max_digits=17)
    assert len(source.manifest.files) == 3
    export_huggingface(source, tmp_path / "out")
    rows = load.load_dataset(
        str(tmp_path / "out"), "mean", split="validation", cache_dir=str(tmp_path / "cache")
    )
    assert msgspec.convert(rows.to_list(), list[Item]) == source.by_task["mean"]


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_changed_file_is_not_exported(file_format: str, tmp_path: Path) -> None:
    source = small_dataset(tmp_path / "small", format=file_format)
    path = source.path / source.manifest.files[0].file
    path.write_bytes(path.read_bytes().replace(b"mean-", b"Mean-"))
    with pytest.raises(BadInput, match="content differs from the hash"):
        export_huggingface(source, tmp_path / "out")


def test_foreign_readme_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# My project\n")
    with pytest.raises(BadInput, match="choose another --out"):
        export_huggingface(open_dataset("v1"), tmp_path)
    assert (tmp_path / "README.md").read_text() == "# My project\n"
