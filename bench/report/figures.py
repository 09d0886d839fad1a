"""What all figures share: style, colours, labels, and the same bytes for the same data."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from bench.report.layout import Entry, one_line

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

FORMATS = ("png", "pdf", "svg")

FULL_WIDTH = 7.0
HALF_WIDTH = 3.4
"""Inches: a figure across a printed page, and one across a column. No text is below 7 points."""
SMALL = 7.0

# Okabe and Ito's colour-blind-safe palette without its yellow, which white paper swallows, and
# without black, which is kept for what concerns all runs.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLACK = "#000000"
GREY = "#555555"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "p")
LINES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
HATCHES = ("", "/////", "....", "\\\\\\\\\\", "xxxxx", "-----", "|||||")
PUBLISHED_LINE: Dashes = (0, (4, 2))
"""Published values: dashed lines and hollow markers, in every figure."""
LEVEL_COLOURS = {
    "maximal": "#0072B2",
    "high": "#009E73",
    "medium": "#CC79A7",
    "low": "#56B4E9",
    "minimal": "#D55E00",
    "none": "#E69F00",
}

_LONGEST_LABEL = 30
_STYLE: dict[Any, Any] = {
    "backend": "agg",
    "figure.facecolor": "white",
    "figure.labelsize": 8.0,
    "figure.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "axes.linewidth": 0.6,
    "axes.titlesize": 8.0,
    "axes.titlepad": 4.0,
    "axes.labelsize": 8.0,
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": SMALL,
    "legend.frameon": False,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "pdf.fonttype": 42,
    # Names of models are foreign text: a dollar sign must not begin a formula.
    "text.parse_math": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "numbench",
}
_NO_DATES: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


_CANVASES = {"png": FigureCanvasAgg, "pdf": FigureCanvasPdf, "svg": FigureCanvasSVG}
_DPI = 200


class Look(NamedTuple):
    """What tells a run from others: colour, and what also tells it apart in grey."""

    colour: str
    marker: str
    line: Dashes
    hatch: str


def look(place: int) -> Look:
    """The look of the run or model at `place`; the first 66 differ in colour or marker."""
    return Look(
        PALETTE[place % len(PALETTE)],
        MARKERS[place % len(MARKERS)],
        LINES[place // len(PALETTE) % len(LINES)],
        HATCHES[place % len(HATCHES)],
    )


@contextmanager
def style() -> Iterator[None]:
    """Draw as numbench does, whatever the user's own matplotlib settings say."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        # A name in a script that the font lacks is drawn as boxes; that is no news to the reader.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def rendered(figure: Figure) -> dict[str, bytes]:
    """The figure in each format, in its own size."""
    # Places are worked out once, and are then the same in all formats. Each canvas draws once,
    # where savefig would draw everything twice.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    files = {}
    for form in FORMATS:
        buffer = io.BytesIO()
        figure.set_dpi(_DPI)
        write = getattr(_CANVASES[form](figure), f"print_{form}")
        write(buffer, metadata=_NO_DATES[form])
        files[form] = buffer.getvalue()
    return files


def label(text: str) -> str:
    """A name on one line, short enough for a legend; of a long one the beginning and the end."""
    text = one_line(text)
    if len(text) > _LONGEST_LABEL:
        half = _LONGEST_LABEL // 2
        text = f"{text[:half]}…{text[1 - half :]}"
    # matplotlib drops labels that begin with an underscore from a legend.
    return f" {text}" if text.startswith("_") else text


def run_label(name: str, reasoning: str) -> str:
    """`GPT 5 (minimal)` for a legend."""
    return f"{label(name)} ({label(reasoning)})"


def models_of(entries: Sequence[Entry]) -> list[str]:
    """The models, each once, in the order of the entries."""
    return list(dict.fromkeys(entry.model for entry in entries))
