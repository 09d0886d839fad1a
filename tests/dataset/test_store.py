"""Dataset folders: names and paths, released datasets, and errors that name file and line."""

import shutil
from pathlib import Path

import pytest

from numbench.core import jsonl
from numbench.core.installation import resource_folder
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import (
    RELEASED_DATASETS,
    Dataset,
    open_dataset,
    open_run_dataset,
    write_dataset,
)
from numbench.errors import BadInput
from numbench.records import DatasetRef
from numbench.tasks.items import make_item
from tests.support.case_tables import each_row

PACKAGED = resource_folder("datasets")


def small_dataset(folder: Path, name: str = "small", operand: str = "1") -> Path:
    """Write a dataset of two additions; `operand` makes its content differ."""
    items = [make_item("addition", "+", (operand, str(n)), {}) for n in (2, 3)]
    dataset = write_dataset(
        folder, {"addition": items}, name=name, generator="test", seed=1, split="test", settings={}
    )
    return dataset.path


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generate(DatasetSettings(name="small", tasks=("addition",), size=5), tmp_path / "small")
    return tmp_path / "small"


@pytest.mark.parametrize("content", [b"", b"{id", b"\xff", None])
def test_a_changed_or_missing_file_is_named(folder: Path, content: bytes | None) -> None:
    path = folder / "addition.jsonl"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=r"addition\.jsonl: missing, or its content differs"):
        Dataset(folder).by_task  # noqa: B018


@each_row(__file__, "bad_manifests")
def test_a_bad_manifest_is_reported(
    folder: Path, content: dict[str, object] | str, message: str
) -> None:
    path = folder / "manifest.json"
    if isinstance(content, str):
        path.write_text(content)
    else:
        jsonl.write_json(path, jsonl.read_json(path, dict) | content)
    with pytest.raises(BadInput) as error:
        Dataset(folder)
    assert f"{path}: {message}" in str(error.value)


def test_an_unknown_dataset_names_the_alternatives(cwd: Path) -> None:
    with pytest.raises(BadInput, match=r"no dataset 'v99'; use v1, short, .* \./v99"):
        open_dataset("v99")


@pytest.mark.parametrize("name", RELEASED_DATASETS)
def test_a_released_name_is_the_packaged_dataset(cwd: Path, name: str) -> None:
    dataset = open_dataset(name)
    assert dataset.path == PACKAGED / name
    shutil.copytree(dataset.path, cwd / "datasets" / name)
    assert open_dataset(name).path == PACKAGED / name
    assert dataset.manifest.sha256 == RELEASED_DATASETS[name]


@pytest.mark.parametrize("local", ["datasets/v1", "v1"])
def test_a_local_dataset_never_replaces_a_released_one(cwd: Path, local: str) -> None:
    small_dataset(Path(local), name="v1")
    with pytest.raises(BadInput) as error:
        open_dataset("v1")
    assert f"{local} is not the released v1; address it as ./{local}" in str(error.value)
    assert len(open_dataset(f"./{local}").by_id) == 2
    assert len(open_dataset(Path(local)).by_id) == 2


def test_a_replaced_released_dataset_is_rejected(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_dataset(cwd / "installed" / "v1", name="v1")
    monkeypatch.setattr("numbench.dataset.store.resource_folder", lambda _name: cwd / "installed")
    with pytest.raises(BadInput, match="is not the released v1; restore it or reinstall"):
        open_dataset("v1")


def test_a_name_of_two_different_folders_is_ambiguous(cwd: Path) -> None:
    small_dataset(Path("mine"))
    assert open_dataset("mine").path == Path("mine")
    small_dataset(Path("datasets/mine"))
    assert open_dataset("mine").path == Path("datasets/mine")
    small_dataset(Path("mine"), operand="5")
    with pytest.raises(BadInput, match=r"by its path: \./datasets/mine or \./mine"):
        open_dataset("mine")


def test_a_run_finds_its_dataset_by_content(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    ref = Dataset(folder).ref(run)
    assert ref.path == "../../small"
    run.mkdir(parents=True)
    assert open_run_dataset(ref, run).path.resolve() == folder.resolve()
    small_dataset(folder, operand="9")
    with pytest.raises(BadInput, match="has changed since the run") as error:
        open_run_dataset(ref, run)
    assert ref.sha256[:12] in str(error.value) and ref.sha256 not in str(error.value)


def test_a_run_finds_its_dataset_by_its_hash_whatever_its_name(cwd: Path) -> None:
    local = Dataset(small_dataset(Path("datasets/v1"), name="v1"))
    for sha256, path in (
        (RELEASED_DATASETS["v1"], PACKAGED / "v1"),
        (local.manifest.sha256, local.path),
    ):
        ref = DatasetRef(name="v1", path="../elsewhere", sha256=sha256)
        assert open_run_dataset(ref, cwd / "run").path == path
