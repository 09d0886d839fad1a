"""What the ordinary tests check on thousands of items, on hundreds of thousands: `make heavy`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow.dataset
import pytest

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.tasks import PAPER_TASKS
from numbench.tasks.shards import Shard, generate_tables
from tests.support import reference_answers

pytestmark = pytest.mark.heavy
ROWS = 112_000


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_a_million_truths_recomputed(task: str) -> None:
    """Nine times 112,000 answers, each worked out from its question's wording alone."""
    checked = 0
    for table in generate_tables(Shard(task, seed=271_828, split="train"), ROWS):
        columns = table.select(["prompt", "answer"]).to_pydict()
        for prompt, answer in zip(columns["prompt"], columns["answer"], strict=True):
            expected = reference_answers.answer(prompt)
            if isinstance(expected, list):
                assert [Fraction(number) for number in answer] == expected, prompt
            elif isinstance(expected, Fraction):
                assert Fraction(answer) == expected, prompt
            else:
                assert answer == expected, prompt
            checked += 1
    assert checked == ROWS


def test_a_large_set_has_no_item_twice(tmp_path: Path) -> None:
    """Three shards of a million, at few digits, where duplicates are the rule."""
    settings = DatasetSettings("large", ("mean",), "train", 3_000_000, 6, 5, "parquet")
    generate(settings, tmp_path, workers=2, shard_rows=1_000_000)
    files = sorted(tmp_path.glob("*.parquet"))
    ids = pyarrow.dataset.dataset(files).to_table(columns=["id"])["id"]
    assert len(ids) == 3_000_000
    assert len(ids.unique()) == 3_000_000
