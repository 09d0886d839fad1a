"""The published study, scored again: what its responses are worth under exact truth, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

OUT = Path("results/rescored-study")


class Rescored(NamedTuple):
    """What a re-scoring wrote: its folder, the page, the reports (none without responses).

    labels: how many were checked, and how many of them are wrong. cells: how many scores were
    taken again, and how many of them the study's own scoring reproduces to the printed digit,
    of those that the paper prints.
    """

    out: Path
    page: Path
    reports: tuple[Path, ...]
    labels: tuple[int, int]
    cells: tuple[int, int, int]


def rescore(folder: Path, out: Path = OUT, say: Callable[[str], None] | None = None) -> Rescored:
    """Import the study's files in `folder`, audit their labels, score them again, and write `out`.

    `out/README.md` is the page, `out/figures/` its figures, `out/rescored.csv` every number on it,
    `out/files.csv` the files it is made from; `out/runs/` and `out/report/` hold the imported runs
    and the full reports. The same files give the same page. `say` takes what a person should know;
    by default it goes to stderr. BadInput for a folder without such files, and for a file that
    cannot be read.
    """
    # Drawing libraries load slowly, and whoever imports this package may not draw.
    from bench.rescore.build import build

    return build(folder, out, say)
