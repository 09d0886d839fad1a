"""What the ordinary tests check on thousands of items, on a million: `make heavy`."""

from itertools import islice

import pytest

from numbench.tasks import PAPER_TASKS
from numbench.tasks.shards import Shard, generate_items
from tests.support import reference_answers

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_a_million_answers_are_exact(task: str) -> None:
    for item in islice(generate_items(Shard(task, 271_828, "train")), 112_000):
        reference_answers.check(item)
