"""All figures of a dataset, written atomically."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from bench import jsonl
from bench.describe import heat, histograms
from bench.describe.columns import Described, read_columns
from bench.report import figures


def describe_dataset(dataset: str | Path, out: Path | None = None) -> list[Path]:
    """As `bench.describe.describe`."""
    described = read_columns(dataset)
    folder = described.folder / "figures" if out is None else out
    written = []
    with figures.style():
        for name, figure in _draw(described):
            written += write_figure(folder, name, figure)
    return written


def write_figure(folder: Path, name: str, figure: Figure) -> list[Path]:
    """Write `folder/name` in each format and return the paths."""
    paths = []
    for form, data in figures.rendered(figure).items():
        path = folder / f"{name}.{form}"
        jsonl.write_atomically(path, data)
        paths.append(path)
    return paths


def _draw(dataset: Described) -> Iterator[tuple[str, Figure]]:
    """Name and drawing of each figure that the dataset has something for."""
    for name, figure in (("pairs", heat.pairs(dataset)), ("lists", heat.lists(dataset))):
        if figure is not None:
            yield name, figure
    yield "digits", histograms.digits(dataset)
    yield "difficulty", histograms.difficulty(dataset, 10)
    yield "difficulty_base2", histograms.difficulty(dataset, 2)
