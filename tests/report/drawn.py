"""What stands written in a figure, and where."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_EDGE = 1.0


def assert_legible(figure: Figure) -> None:
    """Every text lies within the figure, overlaps no other one and is at least 7 points high."""
    figure.draw_without_rendering()
    found = [(text, text.get_window_extent()) for text in texts(figure)]
    assert found
    frame = figure.bbox
    for text, box in found:
        assert text.get_fontsize() >= 7, text
        assert frame.x0 - _EDGE <= box.x0 and box.x1 <= frame.x1 + _EDGE, (text, box, frame)
        assert frame.y0 - _EDGE <= box.y0 and box.y1 <= frame.y1 + _EDGE, (text, box, frame)
    for place, (text, box) in enumerate(found):
        for other, another in found[place + 1 :]:
            assert not _overlap(box, another), (text, other)


def texts(figure: Figure) -> list[Text]:
    """All texts that are drawn."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    found = [
        *figure.texts,
        *(text for axes in figure.axes for text in _texts(axes)),
        *(
            text
            for legend in legends
            if legend
            for text in [*legend.get_texts(), legend.get_title()]
        ),
    ]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def _texts(axes: Axes) -> list[Text]:
    labels = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        air = 1e-9 * (high - low)
        for tick in axis.get_major_ticks():
            if low - air <= tick.get_loc() <= high + air:
                labels.append(tick.label1)
    return [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts, *labels]


def _overlap(one: Bbox, other: Bbox) -> bool:
    """Whether two boxes share more than the rounding of a pixel."""
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    up = min(one.y1, other.y1) - max(one.y0, other.y0)
    return across > 0.5 and up > 0.5
