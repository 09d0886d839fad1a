"""Building blocks of figures: equal panels, legends, labels, axes and error bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from numbench.plot_style import FULL_WIDTH, HALF_WIDTH
from numbench.reporting.figures.draw import fit_text, text_width
from numbench.reporting.names import one_line
from numbench.tasks import TASKS

_LEGEND_ROW_HEIGHT = 0.145
_LEGEND_KEY_WIDTH = 0.43
_LOG_SCALE_RATIO = 20
_MAX_LABEL_LENGTH = 30


class Panels(NamedTuple):
    """A figure and its panels in reading order."""

    figure: Figure
    axes: list[Axes]


def panels(
    count: int,
    *,
    across: int = 3,
    height: float = 1.75,
    title: str = "",
    width: float = FULL_WIDTH,
    share: bool = False,
) -> Panels:
    """Make a figure with `count` panels, at most `across` per row.

    height: of each row in inches, without legends. width: of a full row in inches; a figure with
    fewer panels is narrower. share: whether all panels share a vertical axis.
    """
    columns = min(across, count)
    rows = math.ceil(count / columns)
    figure_width = max(width * columns / across, min(width, HALF_WIDTH))
    figure = Figure(figsize=(figure_width, height * rows + 0.35), layout="constrained")
    first: Axes | None = None
    axes = []
    for index in range(count):
        axes.append(figure.add_subplot(rows, columns, index + 1, sharey=first if share else None))
        first = axes[0]
        if share:
            axes[index].tick_params(labelleft=index % columns == 0)
    if title:
        figure.suptitle(fit_text(one_line(title), figure_width - 0.2, 9.0))
    return Panels(figure, axes)


def legend_label(text: str) -> str:
    """Return a name on one line, with the middle cut out if it is too long for a legend."""
    text = one_line(text)
    if len(text) > _MAX_LABEL_LENGTH:
        half = _MAX_LABEL_LENGTH // 2
        text = f"{text[:half]}…{text[1 - half :]}"
    # matplotlib omits labels that start with an underscore from legends.
    return f" {text}" if text.startswith("_") else text


def label_panel(axes: Axes, task: str, note: str = "") -> None:
    """Set the title of a panel: the task's name, and a note in parentheses."""
    display = TASKS[task].display
    axes.set_title(f"{display} ({note})" if note else display)


def label_axes(figure_panels: Panels, horizontal: str, vertical: str) -> None:
    """Set the axis labels that all panels share."""
    figure_panels.figure.supxlabel(horizontal)
    figure_panels.figure.supylabel(vertical)


def legend(figure: Figure, handles: Sequence[Artist], title: str | None = None) -> None:
    """Add a legend with as many columns as fit, and enlarge the figure by its height.

    It is below the panels, or above them if there is a shared label below them.
    """
    room = figure.get_figwidth() - 0.2
    for handle in handles:
        handle.set_label(fit_text(str(handle.get_label()), room - _LEGEND_KEY_WIDTH))
    widest = max(text_width(str(handle.get_label())) for handle in handles) + _LEGEND_KEY_WIDTH
    columns = max(1, min(len(handles), int(room / widest)))
    rows = math.ceil(len(handles) / columns)
    # Even columns: nine entries in two rows become five and four.
    columns = math.ceil(len(handles) / rows)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW_HEIGHT * (rows + bool(title)) + 0.1)
    figure.legend(
        handles=list(handles),
        loc="outside upper center" if figure.get_supxlabel() else "outside lower center",
        ncols=columns,
        title=title and fit_text(title, room - 0.1),
        columnspacing=1.2,
        handlelength=2.2,
        handletextpad=0.5,
        labelspacing=0.35,
        borderaxespad=0.2,
    )
