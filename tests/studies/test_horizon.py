"""Problem sizes in the paper's responses: planted responses, and a tenth of the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from numbench.horizon.psychometric import Estimate
from studies.horizon.__main__ import (
    SIZES,
    includes,
    measure_cell,
    question_digits,
    read_responses,
    render,
)
from tests.horizon.outcomes import Curve


def test_digits_are_counted_from_the_first_to_the_last_nonzero_one() -> None:
    operands = (("0",), ("4000", "0.003"), ("6741.74", "-85784589.7707"), ("10.10", "7"))
    assert [question_digits(each) for each in operands] == [1, 1, 12, 3]


def responses(p: dict[int, float], each: int) -> pd.DataFrame:
    """Return planted responses, `each` per size, with a probability of a correct answer."""
    rng = np.random.default_rng(1)
    rows = [
        ("multiplication", "A · none", size, float(rng.random() < p[size]), 10.0)
        for _ in range(each)
        for size in SIZES
    ]
    return pd.DataFrame(rows, columns=["task", "config", "digits", "correct", "tokens"])


def of_curve(curve: Curve) -> dict[int, float]:
    """Return the probability of each size."""
    p = curve.probability(np.array(SIZES, np.float64))
    return dict(zip(SIZES, p.tolist(), strict=True))


def test_fit_and_replays_find_the_planted_curve_with_fewer_questions() -> None:
    cell = measure_cell("multiplication", "A", responses(of_curve(Curve(6, 5, 0.02)), 60), 5)
    assert cell.h50.low <= 6 <= cell.h50.high < 1.4 * cell.h50.low
    assert cell.verdict == "" and cell.isotonic == pytest.approx(6, rel=0.2)
    assert cell.median_replay[0] < 0.25 and cell.coverage >= 0.8
    assert len({h50 for h50, *_ in cell.replays}) > 1


def test_rates_that_rise_do_not_fit() -> None:
    rising = {size: float(size > 8) for size in SIZES}
    assert measure_cell("mean", "A", responses(rising, 20), 1).verdict == "no fit"


def test_sizes_beyond_the_largest_are_equal() -> None:
    assert includes(Estimate(90, 40, 200), 20)
    assert not includes(Estimate(90, 40, 200), 16)


@pytest.mark.slow
def test_a_tenth_of_the_responses_gives_a_page(paper_results: Path) -> None:
    tenth = read_responses(paper_results).iloc[::10]
    files = render(tenth, replays=1)
    page = files["README.md"].decode()
    assert "The logistic curve fits in" in page and "nan" not in page
    assert "GPT OSS 120B · maximal" in page
    assert {name for name in files if name.endswith(".svg")} == {
        "curves-multiplication.svg",
        "curves-division.svg",
        "replays.svg",
    }
