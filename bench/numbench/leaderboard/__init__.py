"""A leaderboard: a static web site of runs, with a page per task and per run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

DEFAULT_TITLE = "How well do language models compute with numbers?"


class Leaderboard(NamedTuple):
    """A written site.

    out: its folder. runs: shown runs, horizons included. pages: HTML files. incomplete: names of
    the runs that have no rank, because they do not answer their whole dataset.
    """

    out: Path
    runs: int
    pages: int
    incomplete: tuple[str, ...] = ()


def _ignore(message: str) -> None:
    pass


def write_leaderboard(
    runs: Sequence[Path],
    out: Path = Path("leaderboard"),
    published: bool = True,
    on_progress: Callable[[str], None] = _ignore,
    title: str = DEFAULT_TITLE,
    repository: str | None = None,
) -> Leaderboard:
    """Score runs under the protocol `exact` and write a site of static files to `out`.

    runs: folders that are runs or contain some; an empty folder makes a site without runs.
    published: whether the paper's values are shown too, marked as such and without a rank. title:
    heading of the first page. repository: URL where runs are submitted.

    Raises BadInput if a run cannot be read, or if `out` has files of something else.
    """
    # Deferred, because drawing libraries load slowly.
    from numbench.leaderboard.site import SiteOptions, write_site

    return write_site(runs, out, SiteOptions(published, title, repository), on_progress)
