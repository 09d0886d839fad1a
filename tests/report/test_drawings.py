"""Figures as they are really drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bench.report import figures, radar, report, scatter
from bench.report.layout import Entry, Estimate
from bench.report.published import published_entries
from bench.tasks import TASKS
from tests.report import runs


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return runs.mixed_run(tmp_path)


def entry(model: str, reasoning: str = "none", score: float = 50.0) -> Entry:
    scores = {task: Estimate(score, score - 5, score + 5) for task in TASKS}
    return Entry(model, reasoning, {"log_smape": scores, "tokens": {}})


def test_the_same_runs_give_the_same_bytes(mixed: Path, tmp_path: Path) -> None:
    report([mixed], out=tmp_path / "one")
    report([mixed], out=tmp_path / "two")
    one = runs.everything(tmp_path / "one")
    assert one == runs.everything(tmp_path / "two")
    forms = {name.rpartition(".")[2] for name in one}
    assert forms == {"csv", "md", "tex", "png", "pdf", "svg", "parquet", "json", "html"}


def test_figures_exist_in_every_format_and_are_drawn(mixed: Path, tmp_path: Path) -> None:
    report([mixed], out=tmp_path / "with")
    report([mixed], published=False, out=tmp_path / "without")
    for name in ("radar", "tokens_vs_score", "radar_gpt-5"):
        for form, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
            full, bare = (
                (tmp_path / side / "figures" / f"{name}.{form}").read_bytes()
                for side in ("with", "without")
            )
            assert full.startswith(magic) and len(bare) > 5_000
            assert len(full) > len(bare), f"{name}.{form} draws nothing published"


def test_unknown_tokens_are_drawn_without_an_axis_to_stand_on(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    folder = runs.run(tmp_path / "run", data, runs.all_right(tokens=None), display="float64")
    report([folder], published=False, out=tmp_path / "out")
    table = (tmp_path / "out" / "tables" / "tokens.csv").read_text()
    assert table.splitlines()[1] == "float64,minimal,,,,,,,,,"
    assert len((tmp_path / "out" / "figures" / "tokens_vs_score.svg").read_bytes()) > 5_000


def test_a_radar_draws_measured_entries_solid_and_published_ones_dashed() -> None:
    (published,) = (
        e for e in published_entries() if (e.model, e.reasoning) == ("GPT 5", "minimal")
    )
    with figures.style():
        figure = radar.radar("GPT 5", [entry("GPT 5", "minimal"), published], "Measured")
    (axes,) = figure.axes
    measured, printed = axes.get_lines()
    assert (measured.get_linestyle(), printed.get_linestyle()) == ("-", "--")
    assert measured.get_color() == printed.get_color()
    assert list(measured.get_ydata()) == [50.0] * 10
    order = [task.display for task in TASKS.values()]
    assert [text.get_text() for text in axes.get_xticklabels()] == order
    expected = [published.tables["log_smape"][task].value for task in TASKS]
    assert list(printed.get_ydata()) == [*expected, expected[0]]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["minimal, measured", "minimal, published"]


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
        faces = {
            tuple(line.get_xdata()): line.get_markerfacecolor()
            for line in axes.get_lines()
            if len(line.get_xdata())
        }
        assert list(faces.values()) == [figures.PALETTE[0], "none"]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["GPT 5", "Qwen3 235B 2507", "filled: measured", "hollow: published"]


def test_thirty_models_look_different_in_the_scatter() -> None:
    looks = {scatter._look(place) for place in range(70)}
    assert len(looks) == 70


def test_no_text_of_the_figures_overlaps() -> None:
    entries = [entry(f"A model with a long name {place}") for place in range(30)]
    with figures.style():
        for figure in (
            radar.overview(entries, "Measured"),
            scatter.tokens_vs_score([*entries, *published_entries()], "Measured"),
        ):
            renderer = FigureCanvasAgg(figure).get_renderer()
            figure.draw(renderer)
            texts = [
                text
                for axes in figure.axes
                for text in (axes.title, *axes.get_xticklabels())
                if text.get_text() and text.get_visible()
            ]
            texts += [text for legend in figure.legends for text in legend.get_texts()]
            boxes = [text.get_window_extent(renderer) for text in texts]
            for place, box in enumerate(boxes):
                assert box.count_overlaps(boxes[place + 1 :]) == 0, texts[place].get_text()


def test_a_name_with_a_dollar_or_an_underscore_is_drawn_as_it_is() -> None:
    with figures.style():
        figure = radar.radar("_a $x", [entry("_a $x", "$\\frac$")], "Measured")
        assert figures.rendered(figure)["svg"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["$\\frac$, measured"]
    assert figures.label("_a") == " _a"
    assert len(figures.label("x" * 99)) == 30


def test_the_users_own_matplotlib_settings_change_nothing() -> None:
    import matplotlib

    def drawn() -> dict[str, bytes]:
        with figures.style():
            return figures.rendered(radar.radar("M", [entry("M")], "Measured"))

    plain = drawn()
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        assert drawn() == plain
        assert matplotlib.rcParams["font.size"] == 20
