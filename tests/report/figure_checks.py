"""Checks of the text in a figure."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_EDGE = 1.0


def assert_legible(figure: Figure) -> None:
    """Check that each text is inside the figure, at least 7 points high and overlaps no other."""
    figure.draw_without_rendering()
    boxes = [(text, text.get_window_extent()) for text in texts(figure)]
    assert boxes
    frame = figure.bbox
    for text, box in boxes:
        assert text.get_fontsize() >= 7, text
        assert frame.x0 - _EDGE <= box.x0 and box.x1 <= frame.x1 + _EDGE, (text, box, frame)
        assert frame.y0 - _EDGE <= box.y0 and box.y1 <= frame.y1 + _EDGE, (text, box, frame)
    for index, (text, box) in enumerate(boxes):
        for other, other_box in boxes[index + 1 :]:
            assert not _overlap(box, other_box), (text, other)


def texts(figure: Figure) -> list[Text]:
    """Return all visible texts."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    all_texts = [
        *figure.texts,
        *(text for axes in figure.axes for text in _texts(axes)),
        *(
            text
            for legend in legends
            if legend
            for text in [*legend.get_texts(), legend.get_title()]
        ),
    ]
    return [text for text in all_texts if text.get_visible() and text.get_text().strip()]


def _texts(axes: Axes) -> list[Text]:
    labels = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        margin = 1e-9 * (high - low)
        for tick in axis.get_major_ticks():
            if low - margin <= tick.get_loc() <= high + margin:
                labels.append(tick.label1)
    return [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts, *labels]


def _overlap(first: Bbox, second: Bbox) -> bool:
    """Return whether two boxes overlap by more than half a pixel."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    return width > 0.5 and height > 0.5
