"""The rule of a memory test: verdicts, and the power and error rates that it states."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.dataset.store import open_dataset
from numbench.memory_test.rule import (
    PairedDesign,
    decide,
    detectable_share,
    power,
    register_rule,
    shared_weights,
)
from numbench.stats.paired import Difference
from tests.support.case_tables import each_row
from tests.support.command_line import CommandLine


def difference(mean: float, half: float, p: float) -> Difference:
    low, high = mean - half, mean + half
    return Difference(500, mean, low, high, p, None, low, high)


@each_row(__file__, "verdicts")
def test_verdicts(
    why: str, tasks: list[Any], overall: list[float], margin: float, verdict: str
) -> None:
    """A difference has a mean, half the width of its interval, and p."""
    decided = decide([difference(*each) for each in tasks], difference(*overall), margin)
    assert decided == verdict, why


def test_tasks_about_the_same_lists_count_twice() -> None:
    lists = {(1, 2), (3, 4)}
    assert shared_weights([{(9,)}, lists, set(lists)]) == (1.0, 2.0, 2.0)
    assert shared_weights([{(1, 2), (5,)}, lists]) == (1.5, 1.5)


DESIGNS = st.builds(
    lambda pairs, tasks: PairedDesign(pairs, (1.0,) * tasks),
    st.integers(5, 3000),
    st.integers(1, 9),
)
SHARES = st.floats(0, 0.99)


@given(DESIGNS, SHARES)
def test_the_detectable_share_has_the_power_of_80_percent(
    design: PairedDesign, right: float
) -> None:
    rights = [right] * design.tasks
    share = detectable_share(design, rights)
    if share is None:
        assert power(design, rights, 1.0) < 0.8
    else:
        assert power(design, rights, share) == pytest.approx(0.8, abs=1e-6)
        assert power(design, rights, max(0.0, share - 0.01)) < 0.8 or share < 0.01


def test_the_registered_share_is_that_of_the_page() -> None:
    lists = [{item.operands for item in items} for items in open_dataset("v1").by_task.values()]
    design = PairedDesign(500, shared_weights(lists))
    rule = register_rule(design, 3.0)
    assert (rule.pairs, rule.tasks, rule.tests, rule.margin) == (500, 9, 10, 3.0)
    assert rule.detectable is not None
    assert power(design, [0.5] * 9, rule.detectable) == pytest.approx(0.8, abs=1e-3)
    assert f"a share of {rule.detectable:.1%} or more" in rule.summary
    page = Path(__file__).parents[2] / "docs" / "validity.md"
    assert f"{rule.detectable:.1%} of the questions" in page.read_text(encoding="utf-8")
    assert "Detects no memorized questions" in register_rule(PairedDesign(5, (1.0,)), 3.0).summary


ARGUMENTS = ("memory-test", "--model", "baseline/float32", "--tasks", "addition")


@pytest.mark.slow
def test_a_memory_test_is_planned_registered_and_reported(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    command = (*ARGUMENTS, "--limit", "8", "--margin", "20")
    plan = numbench(*command, "--dry-run")
    assert "Total: 16 requests" in plan and "margin 20 points" in plan
    assert max(map(len, plan.splitlines())) <= 80
    assert not list(tmp_path.iterdir())
    text = numbench(*command)
    folder = Path("results/baseline-float32_none_v1_memory-test")
    assert "seed hash " in text and f"next: numbench report {folder}" in text
    assert {path.name for path in (tmp_path / folder).iterdir() if path.is_dir()} == {
        "fresh", "fresh-items", "frozen",
    }  # fmt: skip
    again = numbench(*command)
    assert "answered now" not in again and "seed revealed" in again


def test_a_dataset_without_fresh_questions_is_refused(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    assert "fresh questions" in numbench(*ARGUMENTS, "--dataset", "paper", code=2)
    assert not (tmp_path / "results").exists()
