"""Style of all figures: fonts, colors, sizes, and files that are the same for the same data."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, get_args

try:
    # A notebook names its backend to its child processes, whose environment may lack it.
    _backend = None if "matplotlib" in sys.modules else os.environ.pop("MPLBACKEND", None)
    import matplotlib
finally:
    if _backend is not None:
        os.environ["MPLBACKEND"] = _backend
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = _backend

from matplotlib import rc_params_from_file
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure as Figure

from numbench.errors import BadInput

LinePattern = Literal["-"] | tuple[float, tuple[float, ...]]

FigureFormat = Literal["svg", "png", "pdf"]
FORMATS: tuple[FigureFormat, ...] = get_args(FigureFormat)
"""All file formats of `render_figure`."""

FULL_WIDTH = 7.0
HALF_WIDTH = 3.4
"""Widths in inches of a figure that spans a printed page or one of two columns."""

SMALL_FONT_SIZE = 7.0
"""The smallest font size in points."""

_STYLE = Path(__file__).with_name("figures.mplstyle")
PALETTE: Sequence[str] = rc_params_from_file(_STYLE)["axes.prop_cycle"].by_key()["color"]
BLACK = "#000000"
GRAY = "#555555"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "p")
LINE_PATTERNS: tuple[LinePattern, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
)
HATCHES = ("", "/////", "....", "\\\\\\\\\\", "xxxxx", "-----", "|||||")
PUBLISHED_LINE: LinePattern = (0, (4, 2))
"""Published values have dashed lines and hollow markers in every figure."""

_REPRODUCIBLE_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
_DPI = 200


@contextmanager
def plot_style() -> Iterator[None]:
    """Apply the style, independent of the user's matplotlib settings."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(rc_params_from_file(_STYLE, use_default_template=False))
        # Characters that the font lacks are drawn as boxes; no warning is needed.
        warnings.filterwarnings("ignore", message="(?s)Glyph .* missing from")
        yield


def check_formats(formats: Iterable[str]) -> tuple[FigureFormat, ...]:
    """Return the formats, each once. Raises BadInput for an unknown one."""
    known: dict[str, FigureFormat] = {name: name for name in FORMATS}
    listed = list(dict.fromkeys(formats))
    if unknown := [name for name in listed if name not in known]:
        raise BadInput(f"unknown figure format {unknown[0]!r}: use {', '.join(FORMATS)}")
    return tuple(known[name] for name in listed)


def fix_layout(figure: Figure) -> None:
    """Compute the positions of all axes, which do not change afterwards."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


def render_figure(figure: Figure, formats: Sequence[str] = ("png", "svg")) -> dict[str, bytes]:
    """Render a figure at its own size: format → bytes, equal for equal figures.

    formats: some of `FORMATS`.
    """
    # The layout is computed once, so that it is the same in all formats. Printing through the
    # canvas draws once; savefig would draw everything twice.
    fix_layout(figure)
    files = {}
    for form in formats:
        buffer = io.BytesIO()
        figure.set_dpi(_DPI)
        write = getattr(get_registered_canvas_class(form)(figure), f"print_{form}")
        write(buffer, metadata=_REPRODUCIBLE_METADATA[form])
        files[form] = buffer.getvalue()
    return files
