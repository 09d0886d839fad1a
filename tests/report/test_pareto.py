"""The Pareto front, and labels that keep clear of each other."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from bench.report import figures
from bench.report.layout import Entry, Estimate
from bench.report.measured import measure
from bench.report.pareto import Point, front, pareto
from bench.report.placing import Box, Mark, place_labels
from bench.report.prices import cost_points, over_tasks, token_points
from bench.scoring import score_run
from bench.tasks import TASKS
from tests.report import runs
from tests.report.drawn import assert_legible, texts


def point(name: str, price: float, score: float, published: bool = False) -> Point:
    bounds = (None, None) if published else (score - 1, score + 1)
    return Point(name, Estimate(price), Estimate(score, *bounds), published)


def entry(model: str, score: float, tokens: float, tasks: tuple[str, ...] = tuple(TASKS)) -> Entry:
    tables = {
        "log_smape": {task: Estimate(score, score - 3, score + 6) for task in tasks},
        "tokens": {task: Estimate(tokens) for task in tasks},
    }
    return Entry(model, "none", tables)


def test_the_front_holds_whom_nobody_beats_in_both() -> None:
    cheap, better, best = point("a", 1, 50), point("b", 2, 60), point("c", 9, 90)
    beaten, pricier, worse = point("d", 3, 55), point("e", 2.5, 60), point("f", 1, 40)
    assert front([best, beaten, cheap, pricier, worse, better]) == [cheap, better, best]


def test_equals_share_the_front() -> None:
    one, two = point("a", 1, 50), point("b", 1, 50)
    assert front([one, two]) == [one, two]


def test_dominated_points_are_grey_and_those_of_the_front_are_not() -> None:
    with figures.style():
        figure = pareto([point("good", 1, 90), point("bad", 5, 10)], "tokens", "Measured")
    (axes,) = figure.axes
    colours = {
        tuple(map(float, line.get_xdata())): line.get_color()
        for line in axes.get_lines()
        if line.get_marker() == "o"
    }
    assert colours[1.0,] == figures.PALETTE[0]
    assert colours[5.0,] not in figures.PALETTE
    labels = {text.get_text(): text.get_color() for text in axes.texts if text.get_text()}
    assert set(labels) == {"good", "bad"} and labels["good"] == "black" != labels["bad"]


def test_a_published_twin_is_joined_and_takes_no_part_in_the_front() -> None:
    points = [point("m", 10, 50), point("m", 5, 60, published=True), point("n", 20, 70)]
    with figures.style():
        figure = pareto(points, "tokens", "Measured")
    (axes,) = figure.axes
    steps = [line for line in axes.get_lines() if line.get_drawstyle() == "steps-post"]
    assert [list(line.get_xdata()) for line in steps] == [[10, 20]]
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["m", "n"]
    joined = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert [list(line.get_xdata()) for line in joined] == [[10, 5]]


@pytest.mark.parametrize("published", [False, True])
def test_whiskers_are_named_where_somebody_has_them(published: bool) -> None:
    points = [point("a", 1, 50, published), point("b", 2, 60, published)]
    with figures.style():
        (legend,) = pareto(points, "tokens", "Measured").legends
    named = any("whiskers" in text.get_text() for text in legend.get_texts())
    assert named != published


@pytest.mark.parametrize("crowded", [False, True])
def test_labels_of_thirty_points_neither_overlap_nor_leave_the_figure(crowded: bool) -> None:
    chance = random.Random(7)
    width = 0.05 if crowded else 1.0
    points = [
        point(f"model {n} (minimal)", 10 ** (3 * width * chance.random()), 60 + 30 * width * n / 30)
        for n in range(30)
    ]
    with figures.style():
        figure = pareto(points, "tokens", "Measured")
        assert_legible(figure)
    written = {text.get_text() for text in texts(figure)}
    assert {p.name for p in points} <= written


def test_labels_keep_clear_of_boxes_and_have_no_place_where_there_is_no_room() -> None:
    area = Box(0, 0, 100, 30)
    mark = Mark(50, 15, 40, 8)
    dot = Box(47, 12, 53, 18)
    first, second = place_labels([mark, mark], [dot], [], area)
    assert first is not None and second is not None
    assert not first.overlaps(second) and not first.overlaps(dot) and first.inside(area)
    assert place_labels([Mark(50, 15, 120, 8)], [], [], area) == [None]
    assert place_labels([mark], [Box(0, 0, 100, 30)], [], area) == [None]


def test_a_label_avoids_a_line_where_that_costs_little() -> None:
    area = Box(0, 0, 200, 200)
    mark = Mark(100, 100, 40, 8)
    line = ((100.0, 100.0), (200.0, 100.0))
    (free,) = place_labels([mark], [], [], area)
    (box,) = place_labels([mark], [], [line], area)
    assert free is not None and free.bottom < 100 < free.top
    assert box is not None and (box.bottom > 100 or box.top < 100 or box.right < 100)


def test_a_mean_over_tasks_weighs_each_the_same_and_adds_errors_in_squares() -> None:
    mean = over_tasks([Estimate(10, 7, 16), Estimate(30, 26, 38)])
    assert mean == pytest.approx((20, 20 - 5 / 2, 20 + 10 / 2))
    assert over_tasks([Estimate(10, 7, 16), Estimate(30)]) == Estimate(20)


def test_a_run_that_lacks_a_task_or_its_tokens_is_no_point() -> None:
    some = entry("some", 90, 5, tasks=("mean", "std"))
    mute = entry("mute", 90, 5)
    del mute.tables["tokens"]["mean"]
    (only,) = token_points([some, mute, entry("all", 50, 100)])
    assert (only.name, only.price.value, only.score.value) == ("all (none)", 100, 50)
    assert token_points([]) == []


def test_dollars_are_for_a_thousand_items_where_every_response_has_a_cost(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    paid = {k: msgspec.structs.replace(r, cost=0.002) for k, r in runs.all_right().items()}
    some = dict(paid) | {"mean-1": runs.right("mean", 1)}
    folders = [
        runs.run(tmp_path / name, data, found, display=name)
        for name, found in (("paid", paid), ("some", some), ("free", runs.all_right()))
    ]
    (found,) = cost_points(measure([score_run(folder) for folder in folders]))
    assert found.name == "paid (minimal)"
    assert found.price.value == pytest.approx(2.0)
    assert found.score.value == 100
