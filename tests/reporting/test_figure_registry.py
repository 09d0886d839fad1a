"""Built-in figures for many and few runs with ordinary and hostile names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from matplotlib.figure import Figure

from numbench.dataset.store import Dataset
from numbench.plot_style import FULL_WIDTH, HALF_WIDTH, plot_style, render_figure
from numbench.records import Response
from numbench.reporting.entries import MeasuredRun, measure, published_entries
from numbench.reporting.figure_registry import FIGURES
from numbench.reporting.figure_spec import FigureSpec, SkippedFigure
from numbench.reporting.report_data import ReportData
from numbench.reporting.table_model import Entry, Estimate
from numbench.scoring import score_run
from numbench.tasks import PAPER_TASKS
from tests.reporting import runs
from tests.reporting.figure_checks import assert_legible

pytestmark = pytest.mark.slow

NAMES = (
    ("GPT 5", "minimal"),
    ("GPT 5", "maximal"),
    ("Costs $5 and $10", "none"),
    ("<b>bold</b> & $\\frac{1}{", "high"),
    ("_under %s {x}", "low"),
    ("A model " + "with a very long name " * 9, "medium, and more than that"),
    ("W" * 200, "W" * 200),
    ("🦜 数値モデル" * 9, "高い"),
    ("tab\tand\nline", "none"),
)
FIGURE_PARAMS = [
    pytest.param(spec, id=spec.name)
    for spec in FIGURES
    # `test_repeated_samples`, `test_variant_report` and `test_reasoning_budgets` draw those that
    # need runs with several samples, prompts or levels, `test_horizon_figures` those of horizons.
    if spec.name not in ("pass_at_k", "variant_effects", "reasoning_budgets")
    and spec.needs == "scores"
]


def responses(index: int) -> dict[str, Response]:
    """Return correct and incorrect responses; length and cost increase with the index."""
    by_id = runs.all_right(tokens=10 * 2**index)
    for number, key in enumerate(list(by_id)):
        task, _, item = key.partition("-")
        if (number * 7 + index) % 5 < index % 4:
            by_id[key] = runs.said(task, int(item), '{"answer": 13.5}', 9 * 2**index)
    return {
        key: msgspec.structs.replace(response, cost=0.001 * 3**index)
        for key, response in by_id.items()
    }


def write_run(folder: Path, data: Dataset, index: int, tasks: tuple[str, ...]) -> Path:
    display, reasoning = NAMES[index]
    of_tasks = {key: r for key, r in responses(index).items() if key.split("-")[0] in tasks}
    return runs.run(
        folder / str(index), data, of_tasks, display=display, reasoning=reasoning, tasks=tasks
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[MeasuredRun]:
    """Nine runs with hostile names; the last one has only two tasks."""
    folder = tmp_path_factory.mktemp("many")
    data = runs.dataset(folder)
    last = len(NAMES) - 1
    folders = [
        write_run(folder, data, index, ("mean", "sorting") if index == last else tuple(PAPER_TASKS))
        for index in range(len(NAMES))
    ]
    return measure([score_run(path) for path in folders])


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> list[MeasuredRun]:
    """Two runs with all answers correct at the same cost, and one without answers."""
    folder = tmp_path_factory.mktemp("equal")
    data = runs.dataset(folder)
    right = {
        key: msgspec.structs.replace(r, cost=0.5) for key, r in runs.all_right(tokens=7).items()
    }
    folders = [
        runs.run(folder / name, data, by_id, display=name)
        for name, by_id in (("one", right), ("two", right), ("silent", {}))
    ]
    return measure([score_run(path) for path in folders])


def draw(spec: FigureSpec, data: ReportData) -> Mapping[str, Figure]:
    result = spec.draw(data)
    assert not isinstance(result, SkippedFigure), result
    return {spec.name: result} if isinstance(result, Figure) else result


def assert_all_legible(spec: FigureSpec, data: ReportData) -> None:
    with plot_style():
        figures = draw(spec, data)
        assert figures
        for stem, figure in figures.items():
            assert [other for other in FIGURES if other.owns(stem)] == [spec]
            assert HALF_WIDTH <= figure.get_figwidth() <= FULL_WIDTH
            assert_legible(figure)


@pytest.mark.parametrize("spec", FIGURE_PARAMS)
def test_nine_runs_with_hostile_names_are_legible(
    spec: FigureSpec, many: list[MeasuredRun]
) -> None:
    assert_all_legible(spec, ReportData(many, published_entries()))


@pytest.mark.parametrize("spec", FIGURE_PARAMS)
def test_equal_values_and_empty_cells_are_legible(
    spec: FigureSpec, equal: list[MeasuredRun]
) -> None:
    assert_all_legible(spec, ReportData(equal))


@pytest.mark.parametrize("spec", FIGURE_PARAMS)
def test_one_run_is_drawn_or_skipped_with_a_reason(
    spec: FigureSpec, many: list[MeasuredRun]
) -> None:
    data = ReportData(many[:1])
    if spec.name.startswith("pareto"):
        assert isinstance(spec.draw(data), SkippedFigure)
    else:
        assert_all_legible(spec, data)


def test_figures_of_items_are_skipped_without_answers(equal: list[MeasuredRun]) -> None:
    data = ReportData(equal[-1:])
    with plot_style():
        results = {spec.name: spec.draw(data) for spec in FIGURES if data.has(spec.needs)}
    reasons = {name: r.reason for name, r in results.items() if isinstance(r, SkippedFigure)}
    assert set(results) - set(reasons) == {"radar", "tokens_vs_score"}
    assert all(reasons.values())


def test_digits_and_error_kinds_are_skipped_under_the_paper_protocol(tmp_path: Path) -> None:
    data = ReportData(measure([score_run(runs.mixed_run(tmp_path), "paper")]))
    for spec in FIGURES:
        if spec.name in ("correct_digits", "failures"):
            result = spec.draw(data)
            assert isinstance(result, SkippedFigure) and "paper protocol" in result.reason


def test_more_than_eight_runs_are_split_into_several_figures(many: list[MeasuredRun]) -> None:
    (spec,) = (spec for spec in FIGURES if spec.name == "difficulty")
    with plot_style():
        figures = draw(spec, ReportData(many))
    assert list(figures) == ["difficulty_1", "difficulty_2"]
    lines = [len(figure.legends[0].get_texts()) for figure in figures.values()]
    # Each with the mean of all runs.
    assert lines == [5 + 1, 4 + 1]


@pytest.mark.parametrize(
    ("stem", "owner"),
    [
        ("radar", "radar"),
        ("radar_gpt-5", None),
        ("difficulty", "difficulty"),
        ("difficulty_2", "difficulty"),
        ("pareto_cost", "pareto_cost"),
        ("notes", None),
        ("radars", None),
        ("difficulty_check", None),
        ("cost", None),
    ],
)
def test_a_file_belongs_to_at_most_one_figure(stem: str, owner: str | None) -> None:
    assert [spec.name for spec in FIGURES if spec.owns(stem)] == ([owner] if owner else [])


@pytest.mark.parametrize("spec", FIGURE_PARAMS)
def test_equal_data_give_equal_bytes(spec: FigureSpec, equal: list[MeasuredRun]) -> None:
    def render() -> list[dict[str, bytes]]:
        with plot_style():
            figures = draw(spec, ReportData(equal[:2]))
            return [render_figure(figure, ["svg"]) for figure in figures.values()]

    assert render() == render()


def test_estimates_without_bounds_use_the_value_as_bounds() -> None:
    assert Estimate(50.0).value_and_bounds is None
    assert Estimate(50.0).bounds_or_value == (50.0, 50.0, 50.0)
    assert Estimate(50.0, 40.0, 60.0).value_and_bounds == (50.0, 40.0, 60.0)
    assert not any(math.isnan(e.value) for entry in published_entries() for e in _estimates(entry))


def _estimates(entry: Entry) -> list[Estimate]:
    return [estimate for row in entry.tables.values() for estimate in row.values()]
