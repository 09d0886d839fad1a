"""Pareto fronts, and labels that do not overlap."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from numbench.plot_style import PALETTE, plot_style
from numbench.reporting.entries import measure, published_entries
from numbench.reporting.figure_registry import FIGURES
from numbench.reporting.label_placement import Box, LabelledPoint, place_labels
from numbench.reporting.pareto import ParetoPoint, pareto, pareto_front
from numbench.reporting.pareto_points import cost_points, token_points
from numbench.reporting.report_data import ReportData
from numbench.reporting.table_model import Entry, Estimate
from numbench.scoring import score_run
from numbench.tasks import PAPER_TASKS
from tests.reporting import runs
from tests.reporting.figure_checks import assert_legible, texts


def point(name: str, price: float, score: float, published: bool = False) -> ParetoPoint:
    bounds = (None, None) if published else (score - 1, score + 1)
    return ParetoPoint(name, Estimate(price), Estimate(score, *bounds), published)


def entry(
    model: str, score: float, tokens: float, tasks: tuple[str, ...] = tuple(PAPER_TASKS)
) -> Entry:
    tables = {
        "log_smape": {task: Estimate(score, score - 3, score + 6) for task in tasks},
        "tokens": {task: Estimate(tokens) for task in tasks},
    }
    return Entry(model, "none", tables)


def test_the_front_has_the_points_that_no_other_dominates() -> None:
    cheap, better, best = point("a", 1, 50), point("b", 2, 60), point("c", 9, 90)
    beaten, pricier, worse = point("d", 3, 55), point("e", 2.5, 60), point("f", 1, 40)
    assert pareto_front([best, beaten, cheap, pricier, worse, better]) == [cheap, better, best]


def test_equals_share_the_front() -> None:
    one, two = point("a", 1, 50), point("b", 1, 50)
    assert pareto_front([one, two]) == [one, two]


def test_dominated_points_are_grey_and_those_of_the_front_are_not() -> None:
    with plot_style():
        figure = pareto([point("good", 1, 90), point("bad", 5, 10)], "tokens", "Measured")
    (axes,) = figure.axes
    colours = {
        tuple(map(float, line.get_xdata())): line.get_color()
        for line in axes.get_lines()
        if line.get_marker() == "o"
    }
    assert colours[1.0,] == PALETTE[0]
    assert colours[5.0,] not in PALETTE
    labels = {text.get_text(): text.get_color() for text in axes.texts if text.get_text()}
    assert set(labels) == {"good", "bad"} and labels["good"] == "black" != labels["bad"]


def test_a_published_twin_is_joined_and_takes_no_part_in_the_front() -> None:
    points = [point("m", 10, 50), point("m", 5, 60, published=True), point("n", 20, 70)]
    with plot_style():
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
    with plot_style():
        (legend,) = pareto(points, "tokens", "Measured").legends
    named = any("error bars" in text.get_text() for text in legend.get_texts())
    assert named != published


@pytest.mark.parametrize("crowded", [False, True])
def test_labels_of_thirty_points_neither_overlap_nor_leave_the_figure(crowded: bool) -> None:
    chance = random.Random(7)
    width = 0.05 if crowded else 1.0
    points = [
        point(f"model {n} (minimal)", 10 ** (3 * width * chance.random()), 60 + 30 * width * n / 30)
        for n in range(30)
    ]
    with plot_style():
        figure = pareto(points, "tokens", "Measured")
        assert_legible(figure)
    written = {text.get_text() for text in texts(figure)}
    assert {p.name for p in points} <= written


def test_labels_avoid_boxes_and_are_omitted_without_space() -> None:
    area = Box(0, 0, 100, 30)
    mark = LabelledPoint(50, 15, 40, 8)
    dot = Box(47, 12, 53, 18)
    first, second = place_labels([mark, mark], [dot], [], area)
    assert first is not None and second is not None
    assert not first.overlaps(second) and not first.overlaps(dot) and first.inside(area)
    assert place_labels([LabelledPoint(50, 15, 120, 8)], [], [], area) == [None]
    assert place_labels([mark], [Box(0, 0, 100, 30)], [], area) == [None]


def test_a_label_avoids_a_line_if_another_position_is_near() -> None:
    area = Box(0, 0, 200, 200)
    mark = LabelledPoint(100, 100, 40, 8)
    line = ((100.0, 100.0), (200.0, 100.0))
    (free,) = place_labels([mark], [], [], area)
    (box,) = place_labels([mark], [], [line], area)
    assert free is not None and free.bottom < 100 < free.top
    assert box is not None and (box.bottom > 100 or box.top < 100 or box.right < 100)


def test_a_label_is_not_beside_the_dot_of_another_point() -> None:
    area = Box(0, 0, 200, 200)
    mark = LabelledPoint(100, 100, 40, 8)
    own, other = Box(97, 97, 103, 103), Box(147, 97, 153, 103)
    (free,) = place_labels([mark], [own], [], area)
    (box,) = place_labels([mark], [own, other], [], area)
    assert free is not None and free.padded(4).overlaps(other)
    assert box is not None and not box.padded(4).overlaps(other)


def test_a_run_without_a_task_or_its_tokens_has_no_point(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    mute = {k: r if r.item_id.split("-")[0] != "mean" else runs.right("mean", int(k[-1]), None)
            for k, r in runs.all_right().items()}  # fmt: skip
    folders = [
        runs.run(tmp_path / "some", data, runs.all_right(), display="some", tasks=("mean", "std")),
        runs.run(tmp_path / "mute", data, mute, display="mute"),
        runs.run(tmp_path / "all", data, runs.all_right(tokens=100), display="all"),
    ]
    published = entry("published", 50, 7)
    incomplete = entry("incomplete", 50, 7, tasks=("mean", "std"))
    report = ReportData(measure([score_run(f) for f in folders]), [published, incomplete])
    points = [(p.name, p.price.value, p.score.value) for p in token_points(report)]
    assert points == [("all (minimal)", 100, 100), ("published (none)", 7, 50)]


def test_costs_are_per_thousand_items_and_need_known_costs(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    paid = {k: msgspec.structs.replace(r, cost=0.002) for k, r in runs.all_right().items()}
    some = dict(paid) | {"mean-1": runs.right("mean", 1)}
    folders = [
        runs.run(tmp_path / name, data, result, display=name)
        for name, result in (("paid", paid), ("some", some), ("free", runs.all_right()))
    ]
    (point_,) = cost_points(ReportData(measure([score_run(f) for f in folders])))
    assert point_.name == "paid (minimal)"
    assert point_.price.value == pytest.approx(2.0)
    assert point_.score.value == 100


@pytest.mark.parametrize(
    ("display", "tokens", "published", "details"),
    [
        ("GPT 5", 10, True, "Error bars: 95 % bounds. Hollow: published, connected to the runs of"),
        ("Other", 10, True, "Error bars: 95 % bounds. Hollow: published."),
        ("Other", 10, False, "Error bars: 95 % bounds."),
        ("Other", None, True, "All points are published ones: no run has token counts"),
    ],
)
def test_the_caption_names_what_the_points_are(
    tmp_path: Path, display: str, tokens: int | None, published: bool, details: str
) -> None:
    answers = runs.all_right(tokens=tokens)
    folder = runs.run(tmp_path / "run", runs.dataset(tmp_path), answers, display=display)
    shown = published_entries() if published else ()
    data = ReportData(measure([score_run(folder, "exact")]), shown)
    (spec,) = (spec for spec in FIGURES if spec.name == "pareto_tokens")
    caption = spec.caption_of(data).removeprefix(spec.caption).strip()
    assert caption.startswith(details)
    assert caption.count(".") == details.count(".") or not details.endswith(".")
