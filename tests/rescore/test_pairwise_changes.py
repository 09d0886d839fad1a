"""Pairwise comparisons before and after re-scoring."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbench.rescore.pairwise_changes import PairwiseChange
from tests.rescore.conftest import read
from tests.rescore.files import Row, write_benchmark, write_responses


@pytest.mark.parametrize(
    ("before", "after", "significant", "change", "swapped"),
    [
        (3.0, 2.0, (True, True), "same", False),
        (3.0, -2.0, (True, True), "reversed", True),
        (3.0, -2.0, (True, False), "lost", True),
        (3.0, 2.0, (False, True), "gained", False),
        (3.0, -2.0, (False, False), "neither", True),
        (0.0, 2.0, (False, False), "neither", False),
    ],
)
def test_change_of_a_comparison(
    before: float, after: float, significant: tuple[bool, bool], change: str, swapped: bool
) -> None:
    pair = PairwiseChange("a", "b", "log_smape", "mean", before, after, *significant)
    assert (pair.change, pair.swapped) == (change, swapped)


def test_order_caused_by_wrong_labels_is_reversed_by_exact_scoring(tmp_path: Path) -> None:
    rows = [Row(f"What is {n} + 0.5?", f"{n}.25", f'{{"answer": {n}.5}}') for n in range(1, 21)]
    repeats = [row._replace(text=f'{{"answer": {row.label}}}') for row in rows]
    write_benchmark(tmp_path / "csv", "Addition", rows)
    write_responses(tmp_path / "csv", "Addition", rows, "openai__gpt-5")
    write_responses(tmp_path / "csv", "Addition", repeats, "google__gemini-2.5-pro")
    changes = {c.table: c for c in read(tmp_path / "csv", tmp_path / "runs").pairwise_changes}
    pair = changes["exact_match"]
    assert (pair.first, pair.second) == ("GPT 5 (maximal)", "Gemini 2.5 Pro (maximal)")
    assert (pair.before, pair.after, pair.change) == (-100, 100, "reversed")
