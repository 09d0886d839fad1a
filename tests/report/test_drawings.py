"""Figures as they are really drawn."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from bench.report import figures, radar, report, scatter
from bench.report.layout import Entry, Estimate
from bench.report.panels import fitted, text_width
from bench.report.published import published_entries
from bench.tasks import TASKS
from tests.report import runs
from tests.report.drawn import assert_legible


def entry(model: str, reasoning: str = "none", score: float = 50.0) -> Entry:
    scores = {task: Estimate(score, score - 5, score + 5) for task in TASKS}
    return Entry(model, reasoning, {"log_smape": scores, "tokens": {}})


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whole reports on one run: `with` and `without` the published values, and `again` without."""
    folder = tmp_path_factory.mktemp("reports")
    mixed = runs.mixed_run(folder)
    report([mixed], out=folder / "with")
    report([mixed], published=False, out=folder / "without")
    report([mixed], published=False, out=folder / "again")
    return folder


def test_the_same_runs_give_the_same_bytes(reports: Path) -> None:
    one = runs.everything(reports / "without")
    assert one == runs.everything(reports / "again")
    forms = {name.rpartition(".")[2] for name in one}
    assert forms == {"csv", "md", "tex", "png", "pdf", "svg", "parquet", "json", "html"}


@pytest.mark.parametrize("form", ["png", "pdf", "svg"])
def test_figures_exist_in_every_format_and_are_drawn(reports: Path, form: str) -> None:
    magic = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[form]
    bare = {path.stem: path.read_bytes() for path in reports.glob(f"without/figures/*.{form}")}
    assert all(data.startswith(magic) and len(data) > 5_000 for data in bare.values())
    assert len(bare) >= 9
    for name in ("radar", "tokens_vs_score", "radar_gpt-5", "results"):
        full = (reports / "with" / "figures" / f"{name}.{form}").read_bytes()
        assert len(full) > len(bare[name]), f"{name}.{form} draws nothing published"


def test_a_figure_that_does_not_apply_is_left_out_for_a_reason(reports: Path) -> None:
    summary = json.loads((reports / "without" / "report.json").read_text())
    assert set(summary["figures_left_out"]) == {"pareto_tokens", "pareto_cost"}
    assert not list(reports.glob("without/figures/pareto*"))


def test_a_png_is_as_large_as_its_print_at_200_dots_per_inch(reports: Path) -> None:
    data = (reports / "without" / "figures" / "results.png").read_bytes()
    assert int.from_bytes(data[16:20]) == 200 * figures.FULL_WIDTH


def test_unknown_tokens_are_drawn_without_an_axis_to_stand_on() -> None:
    with figures.style():
        figure = scatter.tokens_vs_score([entry("float64")], "Measured")
        assert_legible(figure)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "dotted: tokens unknown" in names


def test_a_radar_draws_measured_entries_solid_and_published_ones_dashed() -> None:
    (published,) = (
        e for e in published_entries() if (e.model, e.reasoning) == ("GPT 5", "minimal")
    )
    with figures.style():
        figure = radar.radar("GPT 5", [entry("GPT 5", "minimal"), published], "Measured")
    (axes,) = figure.axes
    measured, printed = axes.get_lines()
    bounds = [whiskers.get_segments() for whiskers in axes.collections]
    # A whisker with two caps on each spoke; no bounds are published.
    assert [len(segments) for segments in bounds] == [3 * len(TASKS), 0]
    assert sorted({radius for segment in bounds[0] for _, radius in segment}) == [45, 55]
    assert (measured.get_linestyle(), printed.get_linestyle()) == ("-", "--")
    assert measured.get_color() == printed.get_color()
    assert list(measured.get_ydata()) == [50.0] * 10
    order = [task.display for task in TASKS.values()]
    assert [text.get_text() for text in axes.get_xticklabels()] == order
    expected = [published.tables["log_smape"][task].value for task in TASKS]
    assert list(printed.get_ydata()) == [*expected, expected[0]]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["minimal, measured", "minimal, published", "whiskers: 95 % bounds"]


def test_the_overview_has_a_panel_per_model() -> None:
    entries = [entry("One"), entry("Two"), entry("One", "high"), *published_entries()]
    with figures.style():
        figure = radar.overview(entries, "Measured")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["One", "Two"] and len(titles) == 2 + 8
    assert len(figure.axes[0].get_lines()) == 2


def test_a_baseline_is_a_line_across_every_panel_and_others_are_points() -> None:
    with figures.style():
        figure = scatter.tokens_vs_score([entry("float64"), *published_entries()], "Measured")
    for axes, task in zip(figure.axes, TASKS, strict=True):
        across = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
        assert [list(line.get_ydata()) for line in across] == [[50.0, 50.0]]
        drawn = {x for line in axes.get_lines() for x in line.get_xdata()}
        low, high = axes.get_xlim()
        for published in published_entries():
            tokens = published.tables["tokens"][task].value
            assert tokens in drawn and low < tokens < high


def test_measured_markers_are_filled_and_published_ones_hollow() -> None:
    measured = next(e for e in published_entries() if e.model == "GPT 5")._replace(published=False)
    with figures.style():
        figure = scatter.tokens_vs_score([measured, *published_entries()[1:2]], "Measured")
    for axes in figure.axes:
        faces = [line.get_markerfacecolor() for line in axes.get_lines()]
        assert [face for face in faces if face != "C0"] == [figures.PALETTE[0], "none"]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:4] == ["GPT 5", "Qwen3 235B 2507", "filled: measured", "hollow: published"]


def test_tokens_stand_on_a_log_axis_only_where_they_spread_far() -> None:
    def tokens(model: str, **counts: float) -> Entry:
        found = entry(model)
        return found._replace(
            tables=found.tables | {"tokens": {task: Estimate(n) for task, n in counts.items()}}
        )

    low, high = tokens("low", addition=10, mean=10), tokens("high", addition=199, mean=201)
    with figures.style():
        figure = scatter.tokens_vs_score([low, high], "Measured")
    scales = dict(zip(TASKS, (axes.get_xscale() for axes in figure.axes), strict=True))
    assert (scales["addition"], scales["mean"]) == ("linear", "log")


def test_models_and_runs_look_different() -> None:
    looks = [figures.look(place) for place in range(66)]
    assert len({(look.colour, look.marker) for look in looks}) == 66
    # In grey, the runs of one figure differ in marker, and bars beside each other in hatch.
    assert len({look.marker for look in looks[:11]}) == 11
    assert all(one.hatch != other.hatch for one, other in pairwise(looks))


def test_no_text_of_the_figures_overlaps_for_thirty_models() -> None:
    entries = [entry(f"A model with a long name {place}") for place in range(30)]
    with figures.style():
        assert_legible(radar.overview(entries, "Measured"))
        assert_legible(scatter.tokens_vs_score([*entries, *published_entries()], "Measured"))


def test_a_name_with_a_dollar_or_an_underscore_is_drawn_as_it_is() -> None:
    with figures.style():
        figure = radar.radar("_a $x", [entry("_a $x", "$\\frac$")], "Measured")
        assert figures.rendered(figure)["svg"]
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text() == "$\\frac$, measured"
    assert figures.label("_a") == " _a"
    assert len(figures.label("x" * 99)) == 30
    assert figures.label("two\nlines\tand\x1b") == "two lines and"


def test_a_text_is_cut_in_its_middle_to_the_width_it_has() -> None:
    text = "A model with a long name that ends in something else"
    with figures.style():
        assert fitted(text, 9) == text
        for width in (0.5, 1.0, 2.0):
            cut = fitted(text, width)
            assert 0.75 * width < text_width(cut) <= width
            assert cut.startswith("A") and cut.endswith("e") and "…" in cut


def test_the_users_own_matplotlib_settings_change_nothing() -> None:
    import matplotlib

    def drawn() -> dict[str, bytes]:
        with figures.style():
            return figures.rendered(radar.radar("M", [entry("M")], "Measured"))

    plain = drawn()
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        assert drawn() == plain
        assert matplotlib.rcParams["font.size"] == 20
