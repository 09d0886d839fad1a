"""The figures of a training, artist from its metrics log."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.image import imread

from bittoken.training import plots
from numbench.errors import BadInput
from numbench.plot_style import plot_style

TASKS = ("minmax", "mean", "text")
CHANCE = {"minmax": 0.320833, "mean": 0.0, "text": 0.0}
START = {"step": 0, "event": "started", "chance": CHANCE}


def log_lines(validations: int, tasks: tuple[str, ...] = TASKS) -> list[dict[str, Any]]:
    """Return entries whose scores grow by 1/1000 per validation; mean has a curriculum."""
    lines = []
    for number in range(1, validations + 1):
        level = {
            "frontier": min(1 + number // 2, 9),
            "levels": 10,
            "level_score": [1.0, 0.5, None if number > 1 else 0.25, *[None] * 7],
        }
        scores = {"score": number / 1000, "exact": number / 2000, "items": 10}
        lines.append(
            {
                "step": 32 * number,
                "loss": dict.fromkeys(tasks, 2.0 / number),
                "ratio": dict.fromkeys(tasks, 1 / len(tasks)),
                "tasks": {task: scores | (level if task == "mean" else {}) for task in tasks},
                "harmonic_mean": 0.5,
            }
        )
    return lines


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(line) + "\n" for line in [START, *lines])
    (folder / "metrics.jsonl").write_text(text)
    return folder


def panel(figure: Figure, title: str) -> Axes:
    return next(axes for axes in figure.axes if axes.get_title() == title)


def line_data(axes: Axes, index: int) -> tuple[list[float], list[float]]:
    x, y = axes.lines[index].get_data()
    return np.asarray(x).tolist(), np.asarray(y).tolist()


def test_the_same_log_gives_the_same_files(tmp_path: Path) -> None:
    folder = written(tmp_path, log_lines(3, ("minmax", "mean")))
    files = plots.plot_training(folder)
    names = {f"{name}.{form}" for name in ("loss", "scores", "curriculum", "shares")
             for form in ("png", "svg")}  # fmt: skip
    assert {path.name for path in files} == names
    assert {path.parent for path in files} == {tmp_path / "figures"}
    before = {path: path.read_bytes() for path in files}
    assert {path: path.read_bytes() for path in plots.plot_training(folder)} == before
    for path in files:
        if path.suffix == ".png":
            # The image is not empty and has colours.
            assert np.ptp(imread(path)[..., :3], axis=2).max() > 0.3


def test_scores_and_exact_matches_are_drawn_with_the_chance_level() -> None:
    figure = plots.plot_scores(log_lines(3), CHANCE)
    minmax = panel(figure, "MinMax")
    assert line_data(minmax, 0) == ([32, 64, 96], pytest.approx([0.1, 0.2, 0.3]))
    assert line_data(minmax, 1) == ([32, 64, 96], pytest.approx([0.05, 0.1, 0.15]))
    assert line_data(minmax, 2)[1] == pytest.approx([32.0833, 32.0833])
    assert len(panel(figure, "Mean").lines) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "chance"
    alone = plots.plot_scores(log_lines(3, ("mean",)), CHANCE)
    assert "chance" not in [text.get_text() for text in alone.legends[0].get_texts()]


def test_unknown_score_leaves_a_gap() -> None:
    lines = log_lines(3)
    lines[1]["tasks"]["text"]["score"] = None
    _, y = line_data(panel(plots.plot_scores(lines, CHANCE), "Text"), 0)
    assert y == pytest.approx([0.1, math.nan, 0.3], nan_ok=True)


def test_losses_are_labelled_with_plain_numbers() -> None:
    with plot_style():
        figure = plots.plot_losses(log_lines(10))
        figure.draw_without_rendering()
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {"0.2", "0.5", "1", "2"} <= set(labels)


def test_single_validation_is_drawn_as_a_point() -> None:
    figure = plots.plot_scores(log_lines(1), CHANCE)
    assert panel(figure, "MinMax").lines[0].get_marker() == "o"
    assert panel(plots.plot_scores(log_lines(2), CHANCE), "MinMax").lines[0].get_marker() == ""


def test_frontier_is_drawn_over_the_scores_by_level() -> None:
    figure = plots.plot_curricula(log_lines(4))
    assert figure is not None
    mean = panel(figure, "Mean")
    assert line_data(mean, -1) == ([32, 64, 96, 128], [1, 2, 2, 3])
    (mesh,) = [artist for artist in mean.collections if isinstance(artist, QuadMesh)]
    cells = np.ma.filled(mesh.get_array(), np.nan)
    assert cells.shape == (10, 4)
    assert cells[0].tolist() == [100.0] * 4
    # Measured only at the first validation: the score is carried forward.
    assert cells[2].tolist() == [25.0] * 4
    assert np.isnan(cells[3:]).all()
    assert [axes.get_title() for axes in figure.axes[:-1]] == ["Mean"]


def test_log_without_scores_by_level_still_shows_the_frontier() -> None:
    lines = log_lines(4)
    for line in lines:
        del line["tasks"]["mean"]["level_score"]
    figure = plots.plot_curricula(lines)
    assert figure is not None
    assert line_data(panel(figure, "Mean"), -1)[1] == [1, 2, 2, 3]


def test_figures_without_data_are_not_drawn(tmp_path: Path) -> None:
    assert plots.plot_curricula(log_lines(4, ("minmax", "text"))) is None
    assert plots.plot_shares(log_lines(4, ("mean",))) is None
    stems = {
        path.stem for path in plots.plot_training(written(tmp_path, log_lines(2, ("minmax",))))
    }
    assert stems == {"loss", "scores"}


def test_shares_are_drawn_in_percent_from_zero() -> None:
    lines = log_lines(2)
    lines[1]["ratio"] = {"minmax": 0.5, "mean": 0.3, "text": 0.2}
    figure = plots.plot_shares(lines)
    assert figure is not None
    last = [np.asarray(line.get_ydata())[-1] for line in figure.axes[0].lines]
    assert last == pytest.approx([50, 30, 20])
    assert figure.axes[0].get_ylim()[0] == 0


def test_task_has_the_same_style_in_every_training() -> None:
    colours = []
    for tasks in (TASKS, ("text", "mean")):
        figure = plots.plot_losses(log_lines(2, tasks))
        line = figure.axes[0].lines[tasks.index("mean")]
        colours.append((line.get_color(), line.get_linestyle()))
    assert colours[0] == colours[1]
    styles = {plots._task_style(task) for task in (*plots.PAPER_TASKS, "text")}
    assert len(styles) == 10


def test_log_without_validations_gives_no_figures(tmp_path: Path) -> None:
    assert plots.plot_training(written(tmp_path, [])) == []
    assert not (tmp_path / "figures").exists()
    with pytest.raises(BadInput, match="no training in this folder"):
        plots.plot_training(tmp_path / "nowhere")
