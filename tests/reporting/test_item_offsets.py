"""Published scores are marked with how much easier the runs' items are."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import pytest

from numbench.dataset.store import open_dataset
from numbench.reporting.entries import published_entries
from numbench.reporting.item_offsets import MARK, item_offsets
from numbench.reporting.score_tables import published_notes, value_groups
from numbench.reporting.table_model import EXACT_MATCH, LOG_SMAPE, TOKENS


class Manifest(NamedTuple):
    sha256: str
    settings: dict[str, object]


class FakeDataset(NamedTuple):
    manifest: Manifest


V1 = open_dataset("v1")
STUDY_LIKE = FakeDataset(Manifest("0" * 64, {"profile": "study"}))
OTHER = FakeDataset(Manifest("1" * 64, {"max_digits": 12}))


def test_offsets_are_those_of_the_committed_page() -> None:
    offsets = item_offsets([V1])
    assert offsets is not None and list(offsets.datasets) == ["v1"]
    path = Path(__file__).parents[2] / "results/comparability/offsets.csv"
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["Dataset"] == "v1"]
    (div,) = [r for r in rows if (r["Table"], r["Task"]) == ("exact_match", "Div")]
    assert offsets.datasets["v1"]["exact_match"]["division"] == float(div["offset"]) > 5
    assert offsets.datasets["v1"]["log_smape"]["minmax"] is None


def test_a_note_names_every_task_of_the_table() -> None:
    offsets = item_offsets([V1, V1])
    assert offsets is not None
    note = offsets.note(LOG_SMAPE)
    assert note is not None and note.startswith(MARK)
    assert "Div +4." in note and "Interval -" in note
    assert "(MinMax, Sorting: too few errors to estimate)" in note
    assert offsets.note(TOKENS) is None


def test_another_dataset_beside_does_not_remove_the_note() -> None:
    alone, beside = item_offsets([V1]), item_offsets([OTHER, V1])  # type: ignore[list-item]
    assert alone is not None and beside is not None
    assert beside.note(LOG_SMAPE) == alone.note(LOG_SMAPE)


def test_the_note_has_the_offsets_of_each_dataset() -> None:
    offsets = item_offsets([STUDY_LIKE, V1])  # type: ignore[list-item]
    assert offsets is not None
    note = offsets.note(LOG_SMAPE)
    assert note is not None and note.count(MARK) == 1
    assert "subtract it from a score on v1." in note
    assert "subtract it from a score on study-like." in note


@pytest.mark.parametrize("datasets", [[OTHER], []])
def test_other_datasets_have_no_offsets(datasets: list[FakeDataset]) -> None:
    assert item_offsets(datasets) is None  # type: ignore[arg-type]


def test_a_dataset_of_the_profile_has_the_offsets_of_study_like() -> None:
    offsets = item_offsets([STUDY_LIKE])  # type: ignore[list-item]
    assert offsets is not None and list(offsets.datasets) == ["study-like"]


def test_published_rows_are_marked_in_score_tables_only() -> None:
    published, offsets = published_entries(), item_offsets([V1])
    for spec, is_marked in ((LOG_SMAPE, True), (EXACT_MATCH, True), (TOKENS, False)):
        _, group = value_groups(spec, [], published, "measured", offsets)
        assert all(row[0].endswith(MARK) == is_marked for row in group.rows)
        assert len(published_notes(spec, published, offsets)) == 1 + is_marked
    _, group = value_groups(LOG_SMAPE, [], published, "measured")
    assert not any(row[0].endswith(MARK) for row in group.rows)
    assert published_notes(LOG_SMAPE, [], offsets) == []
