"""The page about the other computations that wrong answers equal: `forensics`.

`analysis` compares the answers of runs with `numbench.forensics`; `page`, `page_tables` and
`page_figures` write the results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

OUT = Path("results/forensics")


class ForensicsResult(NamedTuple):
    """The output of `forensics`: the page, and its sentence about each run by the run's name."""

    page: Path
    sentences: dict[str, str]


def forensics(
    sources: Sequence[Path],
    out: Path = OUT,
    on_message: Callable[[str], None] | None = None,
) -> ForensicsResult:
    """Compare the answers of runs with other computations, and write `out`.

    Writes the page `out/README.md` with its figure, all counts `out/alternatives.csv`, the wrong
    answers that equal another computation `out/matches.csv`, and for the study's files `out/runs/`.
    The same runs give the same text. No model is asked.

    sources: run folders, folders of runs, or a folder with the study's CSV files. on_message:
    receives the steps, and notes about the import; by default they are printed to stderr. Raises
    BadInput if there is no run in a source.
    """
    from numbench.forensics_page.page import build

    return build(sources, out, on_message or _to_stderr)


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr)
