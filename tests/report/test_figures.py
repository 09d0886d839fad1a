"""The figures: legible for any runs and names, separate by dataset, the same for equal data."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import matplotlib
import msgspec
import pytest
from matplotlib.figure import Figure

from numbench import plot_style
from numbench.core.installation import resource_folder
from numbench.dataset.store import Dataset
from numbench.plot_style import FULL_WIDTH, HALF_WIDTH
from numbench.records import Estimate, Response, Usage
from numbench.reporting.data import ReportData
from numbench.reporting.figures import FIGURES, FigureSpec, render, write_figures
from numbench.reporting.figures.curves import difficulty_curve
from numbench.reporting.figures.draw import MARK, Point, pareto_front
from numbench.reporting.figures.errors import KINDS, digit_shares, failure_shares
from numbench.scoring import score_run
from numbench.scoring.error_kinds import CATEGORIES
from numbench.tasks import PAPER_TASKS
from tests.report import runs
from tests.report.figure_checks import assert_legible
from tests.report.horizons import invented_run

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
BY_NAME = {spec.name: spec for spec in FIGURES}
ALL = [each for each in FIGURES if each.name != "trend"]
OF_SCORES = [each for each in ALL if each.declaration.needs == "scores"]


def answers(index: int) -> dict[str, Response]:
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
    chosen = {key: r for key, r in answers(index).items() if key.split("-")[0] in tasks}
    return runs.run(
        folder / str(index), data, chosen, display=display, reasoning=reasoning, tasks=tasks
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Nine runs with hostile names; the last one has only two tasks."""
    folder = tmp_path_factory.mktemp("many")
    data = runs.dataset(folder)
    last = len(NAMES) - 1
    return [
        write_run(folder, data, index, ("mean", "sorting") if index == last else tuple(PAPER_TASKS))
        for index in range(len(NAMES))
    ]


def paper_run(folder: Path) -> Path:
    """Write a run on the paper's questions that always answers 5, and return it."""
    paper = Dataset(resource_folder("datasets") / "paper")
    text, usage = '{"answer": 5}', Usage(input=5, visible=9, generated=9, source="reported")
    responses = {
        item.id: Response(item_id=item.id, text=text, finish_reason="stop", usage=usage)
        for items in paper.by_task.values()
        for item in items
    }
    return runs.run(folder / "paper", paper, responses, display="Mine", reasoning="none")


def data_of(folders: list[Path]) -> ReportData:
    return ReportData([score_run(folder) for folder in folders])


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs with all answers correct at the same cost, and one without answers."""
    folder = tmp_path_factory.mktemp("equal")
    data = runs.dataset(folder)
    right = {
        key: msgspec.structs.replace(r, cost=0.5) for key, r in runs.all_right(tokens=7).items()
    }
    return [
        runs.run(folder / name, data, by_id, display=name)
        for name, by_id in (("one", right), ("two", right), ("silent", {}))
    ]


def draw(spec: FigureSpec, data: ReportData) -> Mapping[str, Figure]:
    result = spec.draw(data)
    assert not isinstance(result, str), result
    figures = [result] if isinstance(result, Figure) else result
    return dict(zip(spec.stems(len(figures)), figures, strict=True))


def assert_all_legible(spec: FigureSpec, data: ReportData) -> None:
    with plot_style.plot_style():
        figures = draw(spec, data)
        assert figures
        for stem, figure in figures.items():
            assert [other for other in FIGURES if other.owns(stem)] == [spec]
            assert HALF_WIDTH <= figure.get_figwidth() <= FULL_WIDTH
            assert_legible(figure)


@pytest.fixture(scope="module")
def data_by_kind(many: list[Path], equal: list[Path]) -> dict[str, ReportData]:
    kinds = {"nine hostile names": many, "equal values, empty cells": equal, "one run": many[:1]}
    return {kind: data_of(folders) for kind, folders in kinds.items()}


@pytest.mark.parametrize("which", ["nine hostile names", "equal values, empty cells", "one run"])
@pytest.mark.parametrize("spec", OF_SCORES, ids=lambda spec: spec.name)
def test_figures_of_any_runs_are_legible(
    spec: FigureSpec, which: str, data_by_kind: dict[str, ReportData]
) -> None:
    data = data_by_kind[which]
    if which == "one run" and spec.name.startswith("pareto"):
        assert isinstance(spec.draw(data), str)
    else:
        assert_all_legible(spec, data)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_several_datasets_samples_wordings_and_sizes_are_legible(
    spec: FigureSpec, synthetic_data: ReportData
) -> None:
    assert_all_legible(spec, synthetic_data)


def test_a_trend_has_a_panel_for_each_known_value(many: list[Path]) -> None:
    nights = []
    for day in range(1, 8):
        nights.append(shutil.copytree(many[0], many[0].with_name(f"night-{day}")))
        info = json.loads((nights[-1] / "run.json").read_text())
        info["created"] = f"2026-11-0{day}T03:00:00+00:00"
        (nights[-1] / "run.json").write_text(json.dumps(info))
    for unknown, panels in ({}, 3), ({"cost": None}, 2), ({"cost": None, "usage": {}}, 1):
        for night in nights:
            responses = night / "responses.jsonl"
            lines = [json.loads(line) | unknown for line in responses.read_text().splitlines()]
            responses.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        data = data_of(nights)
        assert_all_legible(BY_NAME["trend"], data)
        with plot_style.plot_style():
            (figure,) = draw(BY_NAME["trend"], data).values()
        assert len(figure.axes) == panels


def test_each_dataset_has_a_front_and_a_heading_of_its_own(
    equal: list[Path], tmp_path: Path
) -> None:
    other = runs.dataset(tmp_path, "other", tasks=("addition", "mean"))
    two = [
        runs.run(
            tmp_path / name, other, runs.all_right(3), display=name, tasks=("addition", "mean")
        )
        for name in ("cheap", "again")
    ]
    data = data_of([*equal[:2], *two])
    with plot_style.plot_style():
        figures = draw(BY_NAME["pareto_tokens"], data)
    assert list(figures) == ["pareto_tokens_1", "pareto_tokens_2"]
    for group, figure in zip(data.datasets, figures.values(), strict=True):
        assert figure.get_suptitle() == group.heading
        front = next(
            line for line in figure.axes[0].get_lines() if line.get_label() == "Pareto front"
        )
        own = {data.estimate(data.runs[index], "generated_tokens") for index in group.runs}
        assert set(front.get_xdata()) == {tokens.value for tokens in own if tokens}


def test_a_mean_over_fewer_tasks_is_not_on_the_front(equal: list[Path], tmp_path: Path) -> None:
    scored = score_run(equal[0])
    few = runs.run(
        tmp_path / "few", scored.dataset, runs.all_right(1), display="few", tasks=("mean", "std")
    )
    with plot_style.plot_style():
        (figure,) = draw(BY_NAME["pareto_tokens"], data_of([*equal[:2], few])).values()
    assert not any("few" in text.get_text() for text in figure.axes[0].texts)
    assert "2 of 3 configurations" in figure.axes[0].get_xlabel()


def test_the_front_has_the_points_that_no_other_dominates() -> None:
    def point(name: str, price: float, score: float) -> Point:
        return Point(name, Estimate(price), Estimate(score))

    cheap, dear, equal, worse = (
        point("cheap", 1, 50), point("dear", 9, 90), point("equal", 9, 90), point("worse", 9, 50)
    )  # fmt: skip
    assert pareto_front([worse, dear, cheap, equal]) == [cheap, dear, equal]


def test_references_are_dashed_in_the_radar_and_hollow_on_the_front(tmp_path: Path) -> None:
    data = data_of([paper_run(tmp_path)])
    assert data.references
    for name in ("pareto_tokens", "radar"):
        assert_all_legible(BY_NAME[name], data)
    with plot_style.plot_style():
        (radar,) = draw(BY_NAME["radar"], data).values()
        (front,) = draw(BY_NAME["pareto_tokens"], data).values()
    (axes,) = radar.axes
    compared, run = axes.get_lines()[:2]
    assert (compared.get_linestyle(), run.get_linestyle()) == ("--", "-")
    assert [text.get_text() for text in axes.get_xticklabels()] == [
        task.display for task in PAPER_TASKS.values()
    ]
    hollow = [
        line.get_markerfacecolor() == "white"
        for line in front.axes[0].get_lines()
        if line.get_marker() == "o" and len(line.get_xdata())
    ]
    assert hollow.count(False) == 1 and hollow.count(True) == len(data.references)


def test_figures_without_answers_are_skipped_with_a_reason(equal: list[Path]) -> None:
    data = data_of(equal[-1:])
    rendered, omitted = render(data, (), lambda message: None)
    assert {figure.stem for figure in rendered} == {"radar"}
    assert all(omitted.values())


def test_more_than_eight_runs_are_split_into_several_figures(many: list[Path]) -> None:
    with plot_style.plot_style():
        figures = draw(BY_NAME["difficulty"], data_of(many))
    labels = {
        stem: [text.get_text() for text in figure.legends[0].get_texts()]
        for stem, figure in figures.items()
    }
    assert {stem: len(of) for stem, of in labels.items()} == {"difficulty_1": 5, "difficulty_2": 4}
    assert any(text.startswith("Costs $5 and $10") for of in labels.values() for text in of)


def test_shares_are_of_the_counted_questions_and_every_kind_has_a_color(tmp_path: Path) -> None:
    data = data_of([runs.mixed_run(tmp_path)])
    (run,) = data.runs
    shares = failure_shares(run)
    # One of 3 in Add, one of 4 in MinMax and Div, none of the six other tasks.
    assert sum(shares.values()) == pytest.approx((100 / 3 + 25 + 25) / 9)
    match = data.estimate(run, "exact_match")
    assert match and sum(shares.values()) == pytest.approx(100 - match.value)
    drawn = {category for kinds in KINDS.values() for category in kinds}
    wrong = {kind.name for kind in CATEGORIES} - {"right", "missing", "error"}
    assert wrong <= drawn
    division = digit_shares(data, 0, "division")
    assert division and division.shares[0] == 25 and division.shares[-1] == 75
    assert division.mean.value == 15
    assert digit_shares(data, 0, "sorting") is None
    difficulty, scores = difficulty_curve(run.values.tasks["minmax"])
    assert difficulty == [0, 1, 2, 3]
    assert scores[0].value == 100 > scores[1].value


def test_sizes_beyond_the_scale_misfits_and_levels_are_marked() -> None:
    data = ReportData([], [invented_run(), invented_run("Zebra", "high", factor=8.0)])
    for name in ("horizons", "horizon_curves"):
        assert_all_legible(BY_NAME[name], data)
    with plot_style.plot_style():
        (figure,) = draw(BY_NAME["horizons"], data).values()
        curves = draw(BY_NAME["horizon_curves"], data)
    markers = {line.get_marker() for line in figure.axes[0].get_lines() if len(line.get_xdata())}
    assert {"o", "<", ">", "x"} <= markers
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert any(re.fullmatch(r"Comparison, digits at 7\d%", name) for name in names)
    assert not any("at 50%" in name for name in names)
    assert list(curves) == ["horizon_curves_1", "horizon_curves_2"]


def marked(figure: Figure) -> dict[str, list[tuple[float, float]]]:
    """Return key of a mark → the coordinates of its points, in the units of the axes."""
    points: dict[str, list[tuple[float, float]]] = {}
    for line in (line for axes in figure.axes for line in axes.get_lines()):
        kind, *keys = (line.get_gid() or "").split("~")
        if kind == MARK:
            known = [(x, y) for x, y in zip(*line.get_data(), strict=True) if y == y]
            keys *= len(known) if len(keys) == 1 else 1
            for key, point in zip(keys, known, strict=True):
                points.setdefault(key, []).append(point)
    return points


def test_points_of_figures_are_the_estimates_of_the_tables(synthetic_data: ReportData) -> None:
    data = synthetic_data
    with plot_style.plot_style():
        drawn = {
            name: [marked(figure) for figure in draw(BY_NAME[name], data).values()]
            for name in ("pareto_tokens", "radar", "correct_digits", "difficulty")
        }
    count = 0
    for name, figures in drawn.items():
        for key, points in (pair for known in figures for pair in known.items()):
            member, _, task = key.partition(".")
            run = data.configurations[int(member)]
            score = data.estimate(run, "score", task or "all")
            assert score
            if name == "pareto_tokens":
                tokens = data.estimate(run, "generated_tokens")
                assert tokens and points == [(tokens.value, score.value)]
            elif name == "radar":
                assert {y for _, y in points} == {score.value}
            elif name == "correct_digits":
                shares = digit_shares(data, int(member), task)
                assert shares and [x for x, _ in points] == [shares.mean.value]
            else:
                x, y = difficulty_curve(run.values.tasks[task])
                assert points == list(zip(x, [each.value for each in y], strict=True))
            count += 1
    assert count > 70


def test_intervals_of_the_radar_are_those_of_the_tables(synthetic_data: ReportData) -> None:
    data = synthetic_data
    with plot_style.plot_style():
        figures = draw(BY_NAME["radar"], data).values()
    ends = {
        tuple(round(float(end), 9) for end in line.get_ydata())
        for figure in figures
        for axes in figure.axes
        for line in axes.get_lines()
    }
    wanted = {
        (round(known.low, 9), round(known.high, 9))
        for run in data.runs
        for task in run.tasks
        if len(data.group_of(run).tasks) > 2
        if (known := data.estimate(run, "score", task))
        and known.low is not None
        and known.high is not None
    }
    assert len(wanted) > 20 and wanted <= ends


def test_only_figures_of_an_earlier_report_are_removed(tmp_path: Path) -> None:
    for name in ("difficulty_2.svg", "radar_gpt-5.svg", "notes.png"):
        (tmp_path / name).write_text("")
    write_figures([], ("svg",), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"radar_gpt-5.svg", "notes.png"}


def test_the_users_matplotlib_settings_have_no_effect(equal: list[Path]) -> None:
    data = data_of(equal[:2])

    def drawn() -> list[dict[str, bytes]]:
        rendered, _ = render(data, (), lambda message: None, ["radar"])
        return [figure.files for figure in rendered]

    plain = drawn()
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        assert drawn() == plain
        assert matplotlib.rcParams["font.size"] == 20
