"""Who is better than whom, before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.rescore.orders import Order
from tests.rescore.conftest import read
from tests.rescore.files import Row, write_benchmark, write_responses


@pytest.mark.parametrize(
    ("before", "after", "shown", "change", "swapped"),
    [
        (3.0, 2.0, (True, True), "same", False),
        (3.0, -2.0, (True, True), "reversed", True),
        (3.0, -2.0, (True, False), "lost", True),
        (3.0, 2.0, (False, True), "gained", False),
        (3.0, -2.0, (False, False), "neither", True),
        (0.0, 2.0, (False, False), "neither", False),
    ],
)
def test_what_becomes_of_an_order(
    before: float, after: float, shown: tuple[bool, bool], change: str, swapped: bool
) -> None:
    order = Order("a", "b", "log_smape", "mean", before, after, *shown)
    assert (order.change, order.swapped) == (change, swapped)


def test_an_order_that_wrong_labels_make_is_reversed_under_exact_truth(tmp_path: Path) -> None:
    rows = [Row(f"What is {n} + 0.5?", f"{n}.25", f'{{"answer": {n}.5}}') for n in range(1, 21)]
    repeats = [row._replace(text=f'{{"answer": {row.label}}}') for row in rows]
    write_benchmark(tmp_path / "csv", "Addition", rows)
    write_responses(tmp_path / "csv", "Addition", rows, "openai__gpt-5")
    write_responses(tmp_path / "csv", "Addition", repeats, "google__gemini-2.5-pro")
    found = {o.table: o for o in read(tmp_path / "csv", tmp_path / "runs").orders}
    order = found["exact_match"]
    assert (order.first, order.second) == ("GPT 5 (maximal)", "Gemini 2.5 Pro (maximal)")
    assert (order.before, order.after, order.change) == (-100, 100, "reversed")
