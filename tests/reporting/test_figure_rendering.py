"""Rendered figures: file formats, styles of runs and entries, and text that fits."""

from __future__ import annotations

import json
import re
from math import pi
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.image import imread

from numbench import plot_style
from numbench.reporting import radar, rendering, report, scatter
from numbench.reporting.entries import published_entries
from numbench.reporting.figure_registry import FIGURES
from numbench.reporting.panels import fit_text, legend_label, text_width
from numbench.reporting.table_model import Entry, Estimate
from numbench.tasks import PAPER_TASKS
from tests.reporting import runs
from tests.reporting.figure_checks import assert_legible

pytestmark = pytest.mark.slow

ALL = tuple(PAPER_TASKS)


def entry(model: str, reasoning: str = "none", score: float = 50.0) -> Entry:
    scores = {task: Estimate(score, score - 5, score + 5) for task in PAPER_TASKS}
    return Entry(model, reasoning, {"log_smape": scores, "tokens": {}})


FIGURE_NAMES = ("results", "pareto_tokens", "pareto_cost")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two reports of the same run, `first` and `second`, with some of the figures."""
    folder = tmp_path_factory.mktemp("reports")
    mixed = runs.mixed_run(folder)
    with pytest.MonkeyPatch.context() as patch:
        specs = [spec for spec in FIGURES if spec.name in FIGURE_NAMES]
        patch.setattr(rendering, "all_figures", lambda: specs)
        for name in ("first", "second"):
            report([mixed], published=False, out=folder / name, formats=plot_style.FORMATS)
    return folder


def test_reports_of_the_same_runs_are_byte_identical(reports: Path) -> None:
    first = runs.everything(reports / "first")
    assert first == runs.everything(reports / "second")
    forms = {name.rpartition(".")[2] for name in first}
    assert forms == {"csv", "md", "tex", "png", "pdf", "svg", "parquet", "json", "html"}


def test_png_has_print_size_and_shows_the_dots_of_the_run(reports: Path) -> None:
    image = imread(reports / "first" / "figures" / "results.png")
    height, width, _ = image.shape
    assert width == 200 * plot_style.FULL_WIDTH
    blue = [int(plot_style.PALETTE[0][i : i + 2], 16) / 255 for i in (1, 3, 5)]
    is_blue = (abs(image[:, :, :3] - blue) < 0.01).all(axis=2)
    # Nine dots with a diameter of 2.8 points, and their error bars.
    dots = 9 * pi / 4 * (200 * 2.8 / 72) ** 2
    assert 0.5 * dots < is_blue.sum() < 5 * dots
    assert height < width


def test_svg_is_well_formed_and_has_print_size(reports: Path) -> None:
    root = ElementTree.parse(reports / "first" / "figures" / "results.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["width"] == f"{72 * plot_style.FULL_WIDTH:g}pt"
    fills = [mark.attrib.get("style", "") for mark in root.iter() if mark.tag.endswith("}use")]
    blue = plot_style.PALETTE[0].lower()
    assert sum(f"fill: {blue}" in style for style in fills) == len(PAPER_TASKS)


def test_pdf_is_complete_and_has_print_size(reports: Path) -> None:
    content = (reports / "first" / "figures" / "results.pdf").read_bytes()
    assert content.startswith(b"%PDF") and content.rstrip().endswith(b"%%EOF")
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) [0-9.]+ \]", content)
    assert float(box) == 72 * plot_style.FULL_WIDTH
    # Fonts are embedded as TrueType, which publishers require.
    assert b"/FontFile2" in content


def test_a_figure_that_does_not_apply_is_omitted_with_a_reason(reports: Path) -> None:
    summary = json.loads((reports / "first" / "report.json").read_text())
    assert set(summary["figures_left_out"]) == {"pareto_tokens", "pareto_cost"}
    assert not list(reports.glob("first/figures/pareto*"))
    page = (reports / "first" / "report.html").read_text()
    assert "Omitted figures:" in page
    assert "pareto cost: fewer than two runs with known costs" in page


def test_entries_without_token_counts_are_a_dotted_line_in_the_legend() -> None:
    with plot_style.plot_style():
        figure = scatter.tokens_vs_score([entry("float64")], ALL, "Measured")
        assert_legible(figure)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "dotted: tokens unknown" in names


def test_a_radar_draws_measured_entries_solid_and_published_ones_dashed() -> None:
    (published,) = (
        e for e in published_entries() if (e.model, e.reasoning) == ("GPT 5", "minimal")
    )
    with plot_style.plot_style():
        figure = radar.radar([entry("GPT 5", "minimal"), published], ALL, "Measured")
    (axes,) = figure.axes
    measured, printed = axes.get_lines()
    bounds = [whiskers.get_segments() for whiskers in axes.collections]
    # A whisker with two caps on each spoke; no bounds are published.
    assert [len(segments) for segments in bounds] == [3 * len(PAPER_TASKS), 0]
    assert sorted({radius for segment in bounds[0] for _, radius in segment}) == [45, 55]
    assert (measured.get_linestyle(), printed.get_linestyle()) == ("-", "--")
    assert measured.get_color() == printed.get_color()
    assert list(measured.get_ydata()) == [50.0] * 10
    order = [task.display for task in PAPER_TASKS.values()]
    assert [text.get_text() for text in axes.get_xticklabels()] == order
    expected = [published.tables["log_smape"][task].value for task in PAPER_TASKS]
    assert list(printed.get_ydata()) == [*expected, expected[0]]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["minimal, measured", "minimal, published", "error bars: 95 % bounds"]


def test_a_radar_has_a_panel_per_model() -> None:
    entries = [entry("One"), entry("Two"), entry("One", "high"), *published_entries()]
    with plot_style.plot_style():
        figure = radar.radar(entries, ALL, "Measured")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["One", "Two"] and len(titles) == 2 + 8
    assert len(figure.axes[0].get_lines()) == 2


def test_runs_that_differ_in_more_than_the_level_have_radars_of_their_own() -> None:
    entries = [entry("One"), entry("One")._replace(note="3 items")]
    with plot_style.plot_style():
        figure = radar.radar(entries, ALL, "Measured")
    assert [axes.get_title() for axes in figure.axes] == ["One", "One (3 items)"]


def test_a_baseline_is_a_line_across_every_panel_and_others_are_points() -> None:
    with plot_style.plot_style():
        figure = scatter.tokens_vs_score([entry("float64"), *published_entries()], ALL, "Measured")
    for axes, task in zip(figure.axes, PAPER_TASKS, strict=True):
        across = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
        assert [list(line.get_ydata()) for line in across] == [[50.0, 50.0]]
        drawn = {x for line in axes.get_lines() for x in line.get_xdata()}
        low, high = axes.get_xlim()
        for published in published_entries():
            tokens = published.tables["tokens"][task].value
            assert tokens in drawn and low < tokens < high


def test_measured_markers_are_filled_and_published_ones_hollow() -> None:
    measured = next(e for e in published_entries() if e.model == "GPT 5")._replace(published=False)
    with plot_style.plot_style():
        figure = scatter.tokens_vs_score([measured, *published_entries()[1:2]], ALL, "Measured")
    for axes in figure.axes:
        faces = [line.get_markerfacecolor() for line in axes.get_lines()]
        assert [face for face in faces if face != "C0"] == [plot_style.PALETTE[0], "none"]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:4] == ["GPT 5", "Qwen3 235B 2507", "filled: measured", "hollow: published"]


def test_the_token_axis_is_logarithmic_only_for_a_wide_range() -> None:
    def tokens(model: str, **counts: float) -> Entry:
        plain = entry(model)
        return plain._replace(
            tables=plain.tables | {"tokens": {task: Estimate(n) for task, n in counts.items()}}
        )

    low, high = tokens("low", addition=10, mean=10), tokens("high", addition=199, mean=201)
    with plot_style.plot_style():
        figure = scatter.tokens_vs_score([low, high], ALL, "Measured")
    scales = dict(zip(PAPER_TASKS, (axes.get_xscale() for axes in figure.axes), strict=True))
    assert (scales["addition"], scales["mean"]) == ("linear", "log")


def test_styles_of_runs_differ() -> None:
    styles = [plot_style.run_style(index) for index in range(88)]
    assert len({(style.colour, style.marker) for style in styles}) == 88
    assert len({style.colour for style in styles[:8]}) == 8
    # In greyscale, the runs of a figure differ in marker.
    assert len({style.marker for style in styles[:11]}) == 11


def test_no_text_overlaps_for_twenty_models() -> None:
    entries = [entry(f"A model with a long name {number}") for number in range(12)]
    with plot_style.plot_style():
        assert_legible(radar.radar(entries, ALL, "Measured"))
        assert_legible(scatter.tokens_vs_score([*entries, *published_entries()], ALL, "Measured"))


def test_dollars_and_underscores_in_names_are_drawn_literally() -> None:
    with plot_style.plot_style():
        figure = radar.radar([entry("_a $x", "$\\frac$")], ALL, "Measured")
        assert plot_style.render_figure(figure)["svg"]
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text() == "$\\frac$, measured"
    assert legend_label("_a") == " _a"
    assert len(legend_label("x" * 99)) == 30
    assert legend_label("two\nlines\tand\x1b") == "two lines and"


def test_long_text_is_shortened_in_the_middle_to_the_available_width() -> None:
    text = "A model with a long name that ends in something else"
    with plot_style.plot_style():
        assert fit_text(text, 9) == text
        for width in (0.5, 1.0, 2.0):
            cut = fit_text(text, width)
            assert 0.75 * width < text_width(cut) <= width
            assert cut.startswith("A") and cut.endswith("e") and "…" in cut


def test_the_users_matplotlib_settings_have_no_effect() -> None:
    import matplotlib

    def draw() -> dict[str, bytes]:
        with plot_style.plot_style():
            return plot_style.render_figure(radar.radar([entry("M")], ALL, "Measured"))

    plain = draw()
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        assert draw() == plain
        assert matplotlib.rcParams["font.size"] == 20
