"""A dataset folder that was damaged says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.dataset.store import Dataset, dataset_of_run, open_dataset
from bench.errors import BadInput


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generate(Settings(name="small", tasks=("addition",), size=5), tmp_path / "small")
    return tmp_path / "small"


def damage(folder: Path, line: int, old: bytes, new: bytes) -> None:
    path = folder / "addition.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (3, b'{"id"', b"{id", "addition.jsonl, line 3: "),
        (2, b'"operands":[', b'"operands":[7,', r"line 2: expected `str`.*operands"),
        (4, b'"task":"addition"', b'"task":"subtraction"', "line 4: field task is 'subtraction'"),
        (1, b'"answer":"', b'"answer":"1', "addition.jsonl: content differs from the hash"),
    ],
)
def test_a_damaged_file_is_named(
    folder: Path, line: int, old: bytes, new: bytes, message: str
) -> None:
    damage(folder, line, old, new)
    with pytest.raises(BadInput, match=message):
        Dataset(folder).by_task  # noqa: B018


def test_a_lost_line_is_noticed(folder: Path) -> None:
    path = folder / "addition.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    with pytest.raises(BadInput, match="4 items, the manifest says 5"):
        Dataset(folder).by_task  # noqa: B018


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "addition.jsonl").unlink()
    with pytest.raises(BadInput, match=r"addition\.jsonl: No such file"):
        Dataset(folder).by_task  # noqa: B018


def test_an_unknown_dataset_names_those_there_are() -> None:
    with pytest.raises(BadInput, match=r"no dataset 'v99'.*v1"):
        open_dataset("v99")


def test_a_run_finds_its_dataset_by_content(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    ref = Dataset(folder).ref(run)
    assert ref.path == "../../small"
    run.mkdir(parents=True)
    assert dataset_of_run(ref, run).path.resolve() == folder.resolve()
    generate(Settings(name="small", tasks=("addition",), size=5, seed=9), tmp_path / "other")
    (folder / "manifest.json").write_bytes((tmp_path / "other/manifest.json").read_bytes())
    with pytest.raises(BadInput, match="has changed since"):
        dataset_of_run(ref, run)
