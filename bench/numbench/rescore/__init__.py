"""Re-score the published study: its scores against exact answers, and what causes the changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

OUT = Path("results/rescored-study")


class RescoreResult(NamedTuple):
    """The output of `rescore`: its folder, the page, and the reports (none without responses).

    labels: numbers of checked and of wrong labels. cells: numbers of re-scored scores, of those
    that the study's own scoring reproduces to the printed digit, and of those that the paper
    prints.
    """

    out: Path
    page: Path
    reports: tuple[Path, ...]
    labels: tuple[int, int]
    cells: tuple[int, int, int]


def rescore(
    folder: Path, out: Path = OUT, on_message: Callable[[str], None] | None = None
) -> RescoreResult:
    """Import the study's files in `folder`, audit their labels, re-score them and write `out`.

    Writes the page `out/README.md`, its figures `out/figures/`, all scores `out/rescored.csv`,
    what moved since the first version of the page `out/changes.csv`, the input files
    `out/files.csv`, the imported runs `out/runs/` and the full reports `out/report/`. The same
    files give the same page. `on_message` receives notes about the import; by default they are
    printed to stderr.

    Raises BadInput if the folder has no such files or a file cannot be read.
    """
    # Drawing libraries load slowly and are needed only here.
    from numbench.rescore.page import build

    return build(folder, out, on_message)
