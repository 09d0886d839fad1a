"""What the ordinary tests check on thousands of items, on hundreds of thousands: `make heavy`."""

from fractions import Fraction

import pytest

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
