"""Figures of single items: the data they show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import Rectangle

from numbench.plot_style import plot_style
from numbench.reporting.bars import bars
from numbench.reporting.correct_digits import digit_distributions
from numbench.reporting.difficulty_curves import difficulty_groups
from numbench.reporting.entries import MeasuredRun, measure
from numbench.reporting.failures import FailureShares, failure_kinds, failure_shares
from numbench.reporting.mean_map import MeanItems, cell_width, heatmap_cells, magnitude, mean_items
from numbench.reporting.sample_size import subset_means, subset_sizes
from numbench.reporting.table_model import Entry, Estimate
from numbench.reporting.task_scores import RunScores, TaskScores
from numbench.scoring import score_run
from numbench.stats.intervals import Interval
from numbench.tasks import PAPER_TASKS
from tests.reporting import runs
from tests.reporting.figure_checks import assert_legible


@pytest.fixture
def mixed(tmp_path: Path) -> list[MeasuredRun]:
    return measure([score_run(runs.mixed_run(tmp_path))])


def series(score: list[float]) -> RunScores:
    places = np.arange(len(score), dtype=float)
    return RunScores("m", "none", np.array(score), places, places)


def test_sizes_grow_up_to_all_items() -> None:
    assert subset_sizes(4) == [4]
    assert subset_sizes(10) == [10]
    assert subset_sizes(60) == [10, 15, 20, 30, 50, 60]
    assert subset_sizes(500)[-3:] == [200, 300, 500]


def test_the_last_subset_is_all_items_and_intervals_shrink() -> None:
    chance = np.random.default_rng(3)
    scores = (100 * chance.random(400)).tolist()
    result = subset_means([TaskScores("addition", (series(scores),), None)])["addition", 0]
    assert result.sizes[-1] == 400
    assert result.means[-1] == pytest.approx(np.mean(scores))
    widths = [bound.high - bound.low for bound in result.bounds]
    assert widths[0] > 2 * widths[-3] > 2 * widths[-1]
    assert all(b.low <= m <= b.high for m, b in zip(result.means, result.bounds, strict=True))


def test_runs_of_the_same_items_grow_by_the_same_items() -> None:
    one, two = series([0.0, 100.0] * 30), series([100.0, 0.0] * 30)
    both = TaskScores("sorting", (one, two._replace(run_index=1)), None)
    result = subset_means([both])
    for a, b in zip(result["sorting", 0].means, result["sorting", 1].means, strict=True):
        assert a + b == pytest.approx(100)


def test_digits_are_counted_per_item_with_unparsed_answers_separate(
    mixed: list[MeasuredRun],
) -> None:
    strips = digit_distributions(mixed)
    # 10 and 20 are right, 33 for 30 agrees in its first digit; a fourth was not answered.
    (addition,) = strips["addition"]
    assert addition.shares[[2, 16]] == pytest.approx([100 / 3, 200 / 3])
    assert addition.mean == pytest.approx(31 / 3)
    (division,) = strips["division"]
    assert division.shares[[0, 16]] == pytest.approx([25, 75])
    assert division.mean == 15
    assert all(own.shares.sum() == pytest.approx(100) for s in strips.values() for own in s)
    assert "interval" not in strips and "sorting" not in strips


def test_the_paper_protocol_has_no_digit_counts(tmp_path: Path) -> None:
    run = score_run(runs.mixed_run(tmp_path), "paper")
    assert digit_distributions(measure([run])) == {}


def test_lists_have_the_magnitude_of_their_mean_and_their_spread(
    mixed: list[MeasuredRun],
) -> None:
    (result,) = mean_items(mixed)
    # Means 14 to 44 of difficulty 0 to 3: x = 1, and s = δ + x − 15.
    assert result.exponent.tolist() == [1, 1, 1, 1]
    assert result.spread.tolist() == [-14, -13, -12, -11]
    assert result.score.tolist() == [100] * 4


def test_magnitudes_are_those_of_the_leading_digit() -> None:
    assert [magnitude(n) for n in ("1", "9.99", "10", "-0.05", "0")] == [0, 0, 1, -2, None]


@given(st.lists(st.tuples(st.integers(-14, 14), st.integers(-28, 14)), min_size=1, max_size=60))
def test_every_item_is_in_the_square_that_covers_it(places: list[tuple[int, int]]) -> None:
    x, s = (np.array(column) for column in zip(*places, strict=True))
    own = MeanItems("m", x, s, np.arange(len(places), dtype=float))
    width = cell_width([own])
    result = heatmap_cells(own, width)
    assert sum(cell.items for cell in result) == len(places)
    assert sum(cell.items * cell.score for cell in result) == pytest.approx(own.score.sum())
    for cell in result:
        inside = (x // width * width == cell.x) & (s // width * width == cell.s)
        assert inside.sum() == cell.items


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200))
def test_points_of_the_mean_figure_contain_every_item_once(values: list[int]) -> None:
    result = difficulty_groups(values)
    counts = [sum(first <= value <= last for value in values) for first, last in result]
    assert sum(counts) == len(values)
    assert len(result) == 1 or min(counts) >= 8


def scored(model: str, value: float, published: bool = False) -> Entry:
    bounds = (None, None) if published else (value - 2, value + 1)
    tables = {"log_smape": {task: Estimate(value, *bounds) for task in PAPER_TASKS}}
    return Entry(model, "none", tables, published)


def test_bars_are_next_to_the_hollow_published_ones_of_their_model() -> None:
    with plot_style():
        figure = bars([scored("a", 50), scored("b", 70)], [scored("b", 75, True), scored("c", 9)])
        assert_legible(figure)
    heights = [patch.get_height() for axes in figure.axes for patch in axes.patches]
    assert heights == [50, 70, 75] * len(PAPER_TASKS)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["a (none)", "b (none)", "hollow: published", "error bars: 95 % bounds"]


KINDS = ("wrong sign", "rounding", "cut off $5", "refused")


def failed(run: str, **shares: float) -> FailureShares:
    named = {kind.replace("_", " "): share for kind, share in shares.items()}
    total = sum(shares.values())
    return FailureShares(run, named, Interval(max(0.0, total - 2), total + 3))


def test_failures_are_stacked_in_the_order_of_their_kinds() -> None:
    runs_ = [failed("a $x", refused=5.0, wrong_sign=10.0), failed("none failed")]
    with plot_style():
        figure = failure_kinds(runs_, KINDS)
        assert_legible(figure)
    (axes,) = figure.axes
    bars_ = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [(bar.get_x(), bar.get_width()) for bar in bars_] == [(0, 10), (10, 5)]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["wrong sign", "refused", "error bars: 95 % bounds"]
    with pytest.raises(ValueError, match="unknown categories: odd"):
        failure_kinds([failed("a", odd=1.0)], KINDS)


def test_the_colour_of_a_kind_does_not_depend_on_other_kinds() -> None:
    def face(**shares: float) -> tuple[float, ...]:
        with plot_style():
            (axes,) = failure_kinds([failed("run", **shares)], KINDS).axes
        return tuple(axes.patches[-1].get_facecolor())

    assert face(refused=1.0) == face(wrong_sign=3.0, rounding=2.0, refused=1.0)


def test_failures_of_a_run_are_shares_of_its_counted_items(mixed: list[MeasuredRun]) -> None:
    (result,) = failure_shares(mixed)
    # Of 34 counted items three are wrong: 33 for 30 and 9 for 4 of the right order of magnitude,
    # and a text without an answer.
    assert sum(result.shares.values()) == pytest.approx(300 / 34)
    assert sorted(result.shares.values()) == [100 / 34, 200 / 34]
    assert result.shares["Unreadable"] == pytest.approx(100 / 34)
    assert result.bounds.low < 300 / 34 < result.bounds.high
