"""Reports: tables, figures, one HTML page and data files, with 95% intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from numbench.records import ProtocolName

if TYPE_CHECKING:
    from numbench.reporting.data import ReportData
    from numbench.reporting.tables.model import BuiltTable

DEFAULT_RUNS = Path("results")
"""Where a report looks for runs if none are named."""
DEMO_RUNS = DEFAULT_RUNS / "demo"
"""The demo's runs, which are shown next to others only if named."""


@dataclass(frozen=True, eq=False, repr=False)
class ReportResult:
    """A written report.

    out: its folder. data: what it is made from. tables: name → table, with unrounded values.
    """

    out: Path
    data: ReportData
    tables: dict[str, BuiltTable]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What affects how the numbers can be read, the most severe first."""
        return tuple(warning.text for warning in self.data.warnings)

    def __repr__(self) -> str:
        runs = len(self.data.runs) + len(self.data.horizons)
        return f"ReportResult({str(self.out)!r}, {runs} run{'s' * (runs != 1)})"

    def _repr_html_(self) -> str:
        """Return the answer, and the table of scores or of problem sizes, for a notebook."""
        from html import escape

        from numbench.reporting.answer import answers
        from numbench.reporting.tables.render import plain_html

        texts = [text for known in answers(self.data) for text in known.sentences]
        shown = [self.tables[name] for name in ("log_smape", "horizons") if name in self.tables]
        return "".join([f"<p>{escape(text)}</p>" for text in texts] + list(map(plain_html, shown)))


def _ignore(message: str) -> None:
    pass


def report(
    runs: Sequence[Path] | None = None,
    protocol: ProtocolName = "exact",
    references: bool = True,
    out: Path = Path("results/report"),
    formats: Sequence[str] = ("svg",),
    on_progress: Callable[[str], None] = _ignore,
) -> ReportResult:
    """Score runs and write a report.

    Writes to `out`: tables/, figures/, scores.parquet (unless all runs measure horizons),
    report.json and report.html.

    runs: folders that are runs or contain some; by default, all runs under results/ except for
        the demo's (results/demo), unless there are no others.
    references: whether runs on the dataset `paper` are compared with the published configurations.
    formats: of the figures in figures/: svg, png, pdf.
    on_progress: is called with a short message before each step.

    Raises BadInput if there is no run, if one cannot be read, or for another format.
    """
    # Deferred, because drawing libraries load slowly.
    from numbench.reporting.build import build

    return build(runs, protocol, references, out, formats, on_progress)
