"""The figures of a report, in the order of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup, escape
from matplotlib.figure import Figure

from numbench import plot_style
from numbench.core import jsonl
from numbench.plot_style import FORMATS, FigureFormat
from numbench.reporting.data import ReportData
from numbench.reporting.figures import curves, errors, horizons, scores
from numbench.reporting.figures.model import FigureSpec

FIGURES = (
    FigureSpec("horizons", horizons.problem_sizes),
    FigureSpec("pareto_tokens", scores.pareto_tokens),
    FigureSpec("pareto_cost", scores.pareto_cost),
    FigureSpec("radar", scores.radar),
    FigureSpec("failures", errors.failures),
    FigureSpec("correct_digits", errors.correct_digits),
    FigureSpec("trend", curves.trend),
    FigureSpec("difficulty", curves.difficulty),
    FigureSpec("horizon_curves", lambda data: list(map(horizons.horizon_curves, data.horizons))),
)


_SVG_SIZE = re.compile(rb'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"')
_PIXELS_PER_POINT = 16 / 9
"""A third more than in print, so the smallest text of a figure, 7 points, has 12 pixels."""


_NOT_DRAWN = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_STYLE = re.compile(r' style="([^"]*)"')
_DECLARATION = re.compile(r"\s*([a-z-]+): *([^;]*);?")
_REFERENCE = re.compile(r'( id="|xlink:href="#|url\(#)')
_SPACE = re.compile(r"\s+")


class RenderedFigure(NamedTuple):
    """A figure with its files: format → content."""

    stem: str
    spec: FigureSpec
    files: dict[str, bytes]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels of CSS."""
        known = _SVG_SIZE.search(self.files["svg"])
        assert known is not None, "matplotlib writes the size in points"
        width, height = (round(float(points) * _PIXELS_PER_POINT) for points in known.groups())
        return width, height

    @property
    def inline(self) -> Markup:
        """The figure as an element of a page, whose policy forbids attributes of style.

        Its ids begin with the stem, because they are unique in a page.
        """
        svg = self.files["svg"].decode()
        svg = _NOT_DRAWN.sub("", svg[svg.index("<svg ") :])
        svg = _STYLE.sub(lambda known: _DECLARATION.sub(r' \1="\2"', known[1]), svg)
        svg = _REFERENCE.sub(rf"\g<1>{self.stem}-", svg)
        width, height = self.size
        caption = escape(self.spec.declaration.caption)
        root = (
            f'<svg role="img" aria-label="{caption}" stroke-linejoin="round" '
            f'stroke-linecap="butt" width="{width}" height="{height}" viewBox='
        )
        # What follows is the box in points; the size before it is replaced.
        _, box = svg.split("viewBox=", 1)
        return Markup(_SPACE.sub(" ", root + box))


def render(
    data: ReportData,
    formats: Sequence[FigureFormat],
    on_progress: Callable[[str], None],
    names: Collection[str] | None = None,
) -> tuple[list[RenderedFigure], dict[str, str]]:
    """Draw the figures; return them, and the reason for each omitted one by its name.

    formats: in addition to SVG, which the page needs. names: only these figures, by default all.
    """
    rendered: list[RenderedFigure] = []
    omitted: dict[str, str] = {}
    kinds = {"scores": data.runs, "horizons": data.horizons}
    applicable = [spec for spec in FIGURES if kinds[spec.declaration.needs]]
    specs = [spec for spec in applicable if names is None or spec.name in names]
    needed = list(dict.fromkeys(("svg", *formats)))
    with plot_style.plot_style():
        for number, spec in enumerate(specs, 1):
            on_progress(f"drawing figure {number} of {len(specs)}: {spec.name}")
            drawn = spec.draw(data)
            if isinstance(drawn, str):
                omitted[spec.name] = drawn
                continue
            figures = [drawn] if isinstance(drawn, Figure) else drawn
            for stem, figure in zip(spec.stems(len(figures)), figures, strict=True):
                files = plot_style.render_figure(figure, needed)
                rendered.append(RenderedFigure(stem, spec, files))
    return rendered, omitted


def write_figures(
    figures: Sequence[RenderedFigure], formats: Sequence[FigureFormat], folder: Path
) -> None:
    """Write the figures, and remove those that only an earlier report wrote to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{one.stem}.{form}": one.files[form] for one in figures for form in formats}
    for name, content in files.items():
        jsonl.write_atomically(folder / name, content)
    for path in folder.iterdir():
        is_figure = path.suffix[1:] in FORMATS and any(spec.owns(path.stem) for spec in FIGURES)
        if is_figure and path.name not in files:
            path.unlink()
