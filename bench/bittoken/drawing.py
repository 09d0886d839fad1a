"""How the figures of the small models look: as those of the reports, and the same every time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.figure import Figure

# Okabe and Ito's colour-blind-safe palette.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

_STYLE: dict[Any, Any] = {
    "backend": "agg",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "axes.linewidth": 0.6,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "figure.labelsize": 8.0,
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "numbench",
}
_DPI = 200
_NO_DATES: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None}}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw as the reports do, whatever the user's own matplotlib settings say."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def rendered(figure: Figure) -> dict[str, bytes]:
    """A figure as PNG and SVG; the same bytes for the same figure."""
    # Places are worked out once, and are then the same in both formats.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    files = {}
    for form, dates in _NO_DATES.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, dpi=_DPI, metadata=dates)
        files[form] = buffer.getvalue()
    return files
