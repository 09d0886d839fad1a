"""A figure of the report: its caption, its files, and how it is drawn from the report's data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from numbench.reporting.report_data import ReportData, RunKind


class SkippedFigure(NamedTuple):
    """The reason why a figure is not drawn."""

    reason: str


FigureResult = Figure | Mapping[str, Figure] | SkippedFigure


class FigureSpec(NamedTuple):
    """A figure of the report.

    name: stem of its files, of lower-case letters, digits, `_` and `-`. caption: shown below it.
    draw: makes the figure; or several as stem → figure, with the stems `NAME_1`, `NAME_2` …; or
    gives the reason why there is none. needs: the kind of runs that it is about. details: returns
    sentences for the end of the caption that depend on the data.
    """

    name: str
    caption: str
    draw: Callable[[ReportData], FigureResult]
    needs: RunKind = "scores"
    details: Callable[[ReportData], str] | None = None

    def caption_of(self, data: ReportData) -> str:
        """Return the caption of the figure of `data`."""
        return f"{self.caption} {self.details(data)}" if self.details else self.caption

    def owns(self, stem: str) -> bool:
        """Return whether a file with this stem is one of the figure's."""
        return re.fullmatch(rf"{re.escape(self.name)}(_\d+)?", stem) is not None
