"""Notes of runs: unique, from what differs, and without paths."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from numbench.reporting.entries import measure
from numbench.reporting.run_names import distinguishing_notes
from numbench.scoring import score_run
from tests.reporting.runs import all_right, dataset, run

FACETS = ("dataset", "items", "date")


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), *(st.sampled_from(["x", "y"]) for _ in FACETS)), max_size=8
    )
)
def test_names_are_unique_and_constant_facets_are_left_out(
    runs: list[tuple[str, str, str, str]],
) -> None:
    facets = [
        tuple((key, key + value) for key, value in zip(FACETS, values, strict=True))
        for _, *values in runs
    ]
    notes = distinguishing_notes([name for name, *_ in runs], facets)
    names = [(name, *note) for (name, *_), note in zip(runs, notes, strict=True)]
    assert len(set(names)) == len(names)
    for (name, *_), note in zip(runs, notes, strict=True):
        peers = [one for (other, *_), one in zip(runs, facets, strict=True) if other == name]
        for text in note:
            is_constant = all(text in (value for _, value in one) for one in peers)
            assert not (is_constant and len(peers) > 1)
        assert note or len(peers) == 1


def test_a_run_with_a_limit_is_named_by_its_items(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    folders = [
        run(tmp_path / "a", data, all_right()),
        run(tmp_path / "b", data, all_right(), limit=3),
        run(tmp_path / "c", data, all_right()),
    ]
    labels = [one.label for one in measure([score_run(folder) for folder in folders])]
    assert labels == [
        "GPT 5 (minimal, all items, run 1)",
        "GPT 5 (minimal, 27 of 36 items)",
        "GPT 5 (minimal, all items, run 2)",
    ]
    assert all(str(tmp_path) not in label for label in labels)
