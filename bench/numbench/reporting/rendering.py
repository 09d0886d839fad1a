"""Drawing and rendering of all figures of a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from numbench import jsonl, plot_style
from numbench.plot_style import FigureFormat
from numbench.reporting.figure_registry import FIGURES, all_figures
from numbench.reporting.figure_spec import FigureSpec, SkippedFigure
from numbench.reporting.registration import describe_error
from numbench.reporting.report_data import ReportData


class RenderedFigure(NamedTuple):
    """A figure with its files: format → content."""

    stem: str
    spec: FigureSpec
    files: dict[str, bytes]
    caption: str


def render_figures(
    data: ReportData,
    formats: Sequence[FigureFormat],
    on_progress: Callable[[str], None],
    names: Collection[str] | None = None,
) -> tuple[list[RenderedFigure], dict[str, str]]:
    """Draw the figures; return them, and the reason for each omitted figure by its name.

    formats: in addition to SVG, which the page needs. names: only these figures, by default all.

    A figure of another package that raises an error is omitted. Raises BadInput for a figure
    that cannot be loaded.
    """
    rendered: list[RenderedFigure] = []
    omitted: dict[str, str] = {}
    specs = [spec for spec in all_figures() if data.has(spec.needs)]
    if names is not None:
        specs = [spec for spec in specs if spec.name in names]
    with plot_style.plot_style():
        for number, spec in enumerate(specs, 1):
            on_progress(f"drawing figure {number} of {len(specs)}: {spec.name}")
            try:
                figures = _draw(spec, data, formats, [figure.stem for figure in rendered])
            except Exception as error:
                if spec in FIGURES:
                    raise
                omitted[spec.name] = describe_error(error)
                continue
            if isinstance(figures, SkippedFigure):
                omitted[spec.name] = figures.reason
            else:
                rendered += figures
    return rendered, omitted


def _draw(
    spec: FigureSpec,
    data: ReportData,
    formats: Sequence[FigureFormat],
    used_stems: Sequence[str],
) -> list[RenderedFigure] | SkippedFigure:
    """Draw and render one figure. Raises ValueError for a stem that is used or not its own."""
    result = spec.draw(data)
    if isinstance(result, SkippedFigure):
        return result
    figures = {spec.name: result} if isinstance(result, Figure) else dict(result)
    for stem in figures:
        if stem in used_stems or not spec.owns(stem):
            raise ValueError(f"the file name {stem!r} is not available")
    caption = spec.caption_of(data)
    needed = dict.fromkeys(("svg", *formats))
    return [
        RenderedFigure(stem, spec, plot_style.render_figure(figure, list(needed)), caption)
        for stem, figure in figures.items()
    ]


def write_figures(
    figures: Sequence[RenderedFigure], formats: Sequence[FigureFormat], folder: Path
) -> None:
    """Write the figures, and remove those that only an earlier report wrote to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for figure in figures:
        for form in formats:
            name = f"{figure.stem}.{form}"
            jsonl.write_atomically(folder / name, figure.files[form])
            written.add(name)
    specs = all_figures()
    for path in folder.iterdir():
        is_figure = path.suffix[1:] in plot_style.FORMATS
        if is_figure and path.name not in written and any(s.owns(path.stem) for s in specs):
            path.unlink()
