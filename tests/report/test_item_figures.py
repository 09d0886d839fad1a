"""Figures drawn from single items: what enters them, and that it is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import Rectangle

from bench.report import figures
from bench.report.bars import bars
from bench.report.correct_digits import strips_of
from bench.report.failures import Failures, failure_kinds, failures_of
from bench.report.intervals import Interval
from bench.report.layout import Entry, Estimate
from bench.report.mean_difficulty import groups
from bench.report.mean_map import Lists, cell_width, cells, lists_of, magnitude
from bench.report.measured import Measured, measure
from bench.report.sample_size import growth, sizes_up_to
from bench.report.series import Series, TaskScores
from bench.scoring import score_run
from bench.tasks import TASKS
from tests.report import runs
from tests.report.drawn import assert_legible


@pytest.fixture
def mixed(tmp_path: Path) -> list[Measured]:
    return measure([score_run(runs.mixed_run(tmp_path))])


def series(score: list[float]) -> Series:
    places = np.arange(len(score), dtype=float)
    return Series("m", "none", np.array(score), places, places)


def test_sizes_grow_up_to_all_items() -> None:
    assert sizes_up_to(4) == [4]
    assert sizes_up_to(10) == [10]
    assert sizes_up_to(60) == [10, 15, 20, 30, 50, 60]
    assert sizes_up_to(500)[-3:] == [200, 300, 500]


def test_the_last_subset_is_all_items_and_intervals_shrink() -> None:
    chance = np.random.default_rng(3)
    scores = (100 * chance.random(400)).tolist()
    found = growth([TaskScores("addition", (series(scores),), None)])["addition", 0]
    assert found.sizes[-1] == 400
    assert found.means[-1] == pytest.approx(np.mean(scores))
    widths = [bound.high - bound.low for bound in found.bounds]
    assert widths[0] > 2 * widths[-3] > 2 * widths[-1]
    assert all(b.low <= m <= b.high for m, b in zip(found.means, found.bounds, strict=True))


def test_runs_of_the_same_items_grow_by_the_same_items() -> None:
    one, two = series([0.0, 100.0] * 30), series([100.0, 0.0] * 30)
    both = TaskScores("sorting", (one, two._replace(place=1)), None)
    found = growth([both])
    for a, b in zip(found["sorting", 0].means, found["sorting", 1].means, strict=True):
        assert a + b == pytest.approx(100)


def test_digits_are_counted_per_item_and_unread_answers_stand_apart(
    mixed: list[Measured],
) -> None:
    strips = strips_of(mixed)
    # 10 and 20 are right, 33 for 30 agrees in its first digit; a fourth was not answered.
    (addition,) = strips["addition"]
    assert addition.shares[[2, 16]] == pytest.approx([100 / 3, 200 / 3])
    assert addition.mean == pytest.approx(31 / 3)
    (division,) = strips["division"]
    assert division.shares[[0, 16]] == pytest.approx([25, 75])
    assert division.mean == 15
    assert all(own.shares.sum() == pytest.approx(100) for s in strips.values() for own in s)
    assert "interval" not in strips and "sorting" not in strips


def test_the_paper_protocol_counts_no_digits(tmp_path: Path) -> None:
    run = score_run(runs.mixed_run(tmp_path), "paper")
    assert strips_of(measure([run])) == {}


def test_lists_lie_at_the_magnitude_of_their_mean_and_their_spread(mixed: list[Measured]) -> None:
    (found,) = lists_of(mixed)
    # Means 14 to 44 of difficulty 0 to 3: x = 1, and s = δ + x − 15.
    assert found.exponent.tolist() == [1, 1, 1, 1]
    assert found.spread.tolist() == [-14, -13, -12, -11]
    assert found.score.tolist() == [100] * 4


def test_magnitudes_are_those_of_the_leading_digit() -> None:
    assert [magnitude(n) for n in ("1", "9.99", "10", "-0.05", "0")] == [0, 0, 1, -2, None]


@given(st.lists(st.tuples(st.integers(-14, 14), st.integers(-28, 14)), min_size=1, max_size=60))
def test_every_item_is_in_the_square_that_covers_it(places: list[tuple[int, int]]) -> None:
    x, s = (np.array(column) for column in zip(*places, strict=True))
    own = Lists("m", x, s, np.arange(len(places), dtype=float))
    width = cell_width([own])
    found = cells(own, width)
    assert sum(cell.items for cell in found) == len(places)
    assert sum(cell.items * cell.score for cell in found) == pytest.approx(own.score.sum())
    for cell in found:
        inside = (x // width * width == cell.x) & (s // width * width == cell.s)
        assert inside.sum() == cell.items


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200))
def test_points_of_the_mean_figure_hold_every_item_once(values: list[int]) -> None:
    found = groups(values)
    counts = [sum(first <= value <= last for value in values) for first, last in found]
    assert sum(counts) == len(values)
    assert len(found) == 1 or min(counts) >= 8


def scored(model: str, value: float, published: bool = False) -> Entry:
    bounds = (None, None) if published else (value - 2, value + 1)
    tables = {"log_smape": {task: Estimate(value, *bounds) for task in TASKS}}
    return Entry(model, "none", tables, published)


def test_bars_stand_beside_the_hollow_published_ones_of_their_model() -> None:
    with figures.style():
        figure = bars([scored("a", 50), scored("b", 70)], [scored("b", 75, True), scored("c", 9)])
        assert_legible(figure)
    heights = [patch.get_height() for axes in figure.axes for patch in axes.patches]
    assert heights == [50, 70, 75] * len(TASKS)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["a (none)", "b (none)", "hollow: published", "whiskers: 95 % bounds"]


KINDS = ("wrong sign", "rounding", "cut off $5", "refused")


def failed(run: str, **shares: float) -> Failures:
    named = {kind.replace("_", " "): share for kind, share in shares.items()}
    total = sum(shares.values())
    return Failures(run, named, Interval(max(0.0, total - 2), total + 3))


def test_failures_are_stacked_in_the_order_of_their_kinds() -> None:
    runs_ = [failed("a $x", refused=5.0, wrong_sign=10.0), failed("none failed")]
    with figures.style():
        figure = failure_kinds(runs_, KINDS)
        assert_legible(figure)
    (axes,) = figure.axes
    bars_ = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [(bar.get_x(), bar.get_width()) for bar in bars_] == [(0, 10), (10, 5)]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["wrong sign", "refused", "whiskers: 95 % bounds"]
    with pytest.raises(ValueError, match="unknown categories: odd"):
        failure_kinds([failed("a", odd=1.0)], KINDS)


def test_a_kind_of_failure_looks_the_same_whatever_else_failed() -> None:
    def face(**shares: float) -> tuple[float, ...]:
        with figures.style():
            (axes,) = failure_kinds([failed("run", **shares)], KINDS).axes
        return tuple(axes.patches[-1].get_facecolor())

    assert face(refused=1.0) == face(wrong_sign=3.0, rounding=2.0, refused=1.0)


def test_failures_of_a_run_are_shares_of_its_counted_items(mixed: list[Measured]) -> None:
    (found,) = failures_of(mixed)
    # Of 34 counted items three are wrong: 33 for 30, 9 for 4, and a text without an answer.
    assert sum(found.shares.values()) == pytest.approx(300 / 34)
    assert set(found.shares.values()) == {100 / 34}
    assert found.shares["Unreadable"] == pytest.approx(100 / 34)
    assert found.bounds.low < 300 / 34 < found.bounds.high
