"""What all figures share: style, colours, labels, and the same bytes for the same data."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from bench.report.layout import Entry

FORMATS = ("png", "pdf", "svg")

# Okabe and Ito's colour-blind-safe palette without its yellow, which white paper swallows.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
LEVEL_COLOURS = {
    "maximal": "#0072B2",
    "high": "#009E73",
    "medium": "#CC79A7",
    "low": "#56B4E9",
    "minimal": "#D55E00",
    "none": "#E69F00",
}
OTHER_LEVEL = "#000000"

_LONGEST_LABEL = 30
_STYLE: dict[Any, Any] = {
    "backend": "agg",
    "figure.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
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
    """The figure in each format, cropped to what is drawn."""
    files = {}
    for form in FORMATS:
        buffer = io.BytesIO()
        figure.savefig(
            buffer,
            format=form,
            dpi=150,
            bbox_inches="tight",
            pad_inches=0.12,
            metadata=_NO_DATES[form],
        )
        files[form] = buffer.getvalue()
    return files


def label(text: str) -> str:
    """A name short enough for a legend; of a long one the beginning and the end."""
    if len(text) > _LONGEST_LABEL:
        half = _LONGEST_LABEL // 2
        text = f"{text[:half]}…{text[1 - half :]}"
    # matplotlib drops labels that begin with an underscore from a legend.
    return f" {text}" if text.startswith("_") else text


def models_of(entries: Sequence[Entry]) -> list[str]:
    """The models, each once, in the order of the entries."""
    return list(dict.fromkeys(entry.model for entry in entries))
