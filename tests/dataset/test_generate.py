"""Generation: equal settings give equal bytes; released names, foreign folders, small spaces."""

import hashlib
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from numbench.core.installation import resource_folder
from numbench.dataset.generate import FileProgress, generate
from numbench.dataset.settings import (
    DatasetSettings,
    parse_numbers,
    parse_tasks,
    strata_share_per_item,
)
from numbench.dataset.shard_files import stratified_sample
from numbench.dataset.store import open_dataset, released_dataset
from numbench.errors import BadInput
from numbench.tasks import CONTEXT_TASKS, PAPER_TASKS, SCALED_TASKS
from numbench.tasks.random_words import RandomStream, attempts
from tests.support.case_tables import each_row

SMALL = DatasetSettings(name="small", tasks=("division", "mean"), size=20, seed=5)
COMMITTED = resource_folder("datasets") / "v1"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(SMALL, tmp_path_factory.mktemp("small") / "d").path


def contents(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.suffix in (".json", ".jsonl")
    }


def test_the_default_settings_give_the_committed_bytes(tmp_path: Path) -> None:
    generate(out=tmp_path / "v1")
    assert contents(tmp_path / "v1") == contents(COMMITTED)


def test_the_settings_of_short_give_the_released_dataset(tmp_path: Path) -> None:
    again = generate(DatasetSettings(name="short", max_digits=4), tmp_path / "short")
    assert again.manifest == open_dataset("short").manifest


def test_generating_again_changes_nothing_and_reports_it(tmp_path: Path) -> None:
    threads = pa.cpu_count()
    written: list[FileProgress] = []
    generate(SMALL, tmp_path / "d", on_file=written.append)
    assert written and pa.cpu_count() == threads
    before = contents(tmp_path / "d")
    written.clear()
    generate(SMALL, tmp_path / "d", on_file=written.append)
    assert not written
    assert contents(tmp_path / "d") == before


@pytest.mark.slow
def test_questions_of_few_numbers_are_exhausted_at_once_at_any_size(tmp_path: Path) -> None:
    """The number of attempts does not grow with the size."""
    settings = SMALL._replace(tasks=("addition",), max_bits=4)
    for size in (60, 99_999_999):
        with pytest.raises(BadInput, match=r"addition has only about \d+ different test questions"):
            generate(settings._replace(size=size), tmp_path / "d")
    assert len(generate(settings, tmp_path / "d").by_task["addition"]) == 20


@each_row(__file__, "sizes_of_numbers")
def test_the_size_of_numbers_has_one_notation(text: str, expected: tuple[object, ...]) -> None:
    assert parse_numbers(text) == expected
    for other in ("", "15", "bits 8", "8 bits / 3", "40", "-3 digits", "1.5 bits"):
        with pytest.raises(BadInput, match="use 'N digits', 'N bits'"):
            parse_numbers(other)


@each_row(__file__, "refused_settings")
def test_settings_without_a_dataset_are_refused_and_leave_nothing(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    change = {name: tuple(v) if isinstance(v, list) else v for name, v in change.items()}
    with pytest.raises(BadInput, match=message):
        generate(SMALL._replace(**change), tmp_path / "d")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_is_filled(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(generate(SMALL, Path()).by_id) == 40
    assert contents(Path()) == contents(small)


def test_a_folder_with_other_files_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadInput, match="other files"):
        generate(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(BadInput, match="holds another dataset"):
        generate(SMALL._replace(seed=6), small)


def test_a_changed_file_is_noticed(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path, dirs_exist_ok=True)
    (tmp_path / "mean.jsonl").write_text("")
    with pytest.raises(BadInput, match=r"mean\.jsonl: missing, or its content differs"):
        generate(SMALL, tmp_path)


@each_row(__file__, "names_of_tasks")
def test_names_of_tasks_are_known_or_corrected(name: str, suggestion: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_tasks(["mean", name])
    assert f"unknown task {name!r}; {suggestion}" in str(error.value)
    assert parse_tasks(["std", " addition"]) == ("addition", "std")
    assert parse_tasks(["all"]) == tuple(PAPER_TASKS) == DatasetSettings().tasks
    assert parse_tasks(["all"], parse_numbers("size 9")) == tuple(SCALED_TASKS)
    assert parse_tasks(["context", "std"]) == ("std", *CONTEXT_TASKS)
    of_integers = parse_tasks(["all"], parse_numbers("8 bits"))
    assert set(PAPER_TASKS) - set(of_integers) == {"exponentiation", "mean", "std"}


@pytest.mark.parametrize("size", [1, 7, 100, 999, 1000])
def test_a_stratified_subset_follows_the_difficulties_of_the_whole(size: int) -> None:
    difficulties = [n * n % 13 for n in range(1000)]
    indices = stratified_sample(
        difficulties, size, next(attempts(RandomStream(1, "s", "test", 0), 3000))
    )
    assert len(set(indices)) == size
    whole, part = Counter(difficulties), Counter(difficulties[index] for index in indices)
    cumulative_difference = 0.0
    for difficulty in sorted(whole):
        cumulative_difference += part[difficulty] / size - whole[difficulty] / 1000
        assert abs(cumulative_difference) <= 1 / size + 1e-12


def test_design_follows_from_the_manifest() -> None:
    assert strata_share_per_item(released_dataset("paper").manifest) == 0.0
    for name in ("v1", "short"):
        manifest = released_dataset(name).manifest
        assert strata_share_per_item(manifest) == pytest.approx(1 / 500 - 1 / 10_000)
    for settings, expected in (
        ({"size": 100}, 1 / 100 - 1 / 10_000),
        ({"size": 9_999}, 1 / 9_999 - 1 / 10_000),
        ({"size": 10_000}, 0.0),
        ({"size": 20_000}, 0.0),
        ({"size": "500"}, 0.0),
        ({}, 0.0),
    ):
        changed = msgspec.structs.replace(manifest, settings=settings)
        assert strata_share_per_item(changed) == pytest.approx(expected)
    other = msgspec.structs.replace(manifest, generator="another")
    assert strata_share_per_item(other) == 0.0
