"""Measure, and write the tables and the figure."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType

from bench import jsonl
from bench.bittoken.desiderata import writing
from bench.bittoken.desiderata.counts import Counts, measured_counts, published_counts
from bench.bittoken.desiderata.drawing import drawn
from bench.bittoken.desiderata.subjects import numbers_of, subjects
from bench.bittoken.desiderata.table import Figures, figures_of, read_trained
from bench.dataset.store import open_dataset


class Measured(NamedTuple):
    """All figures, the files written, and what a terminal shows of them."""

    figures: Figures
    counts: Counts
    written: list[Path]
    shown: RenderableType


def measure_encodings(
    out: Path, dataset: str | Path = "v1", trained: Path | None = None
) -> Measured:
    """Measure every encoding on a dataset's numbers and write the result into the folder `out`.

    trained: a CSV file with columns encoding, task, score (percent). BadInput where it or the
    dataset cannot be read.
    """
    scores = read_trained(trained) if trained else {}
    opened = open_dataset(dataset)
    listed, numbers = subjects(), numbers_of(opened)
    figures = figures_of(listed, numbers, scores)
    counts, published = measured_counts(opened), published_counts()
    text = writing.markdown(figures, listed, counts, published, opened.name)
    files = {
        "encodings.md": text.encode(),
        "encodings.csv": writing.desiderata_csv(figures, listed).encode(),
        "tokens_per_sample.csv": writing.counts_csv(counts).encode(),
        **{f"encodings.{form}": data for form, data in drawn(listed, numbers).items()},
    }
    for name, data in files.items():
        jsonl.write_atomically(out / name, data)
    shown = writing.terminal(figures, listed, counts, published)
    return Measured(figures, counts, [out / name for name in files], shown)
