"""Protection of files that numbench did not write in the folder of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from numbench.errors import BadInput
from numbench.output_folders import check_output_folder

GENERATOR = "numbench leaderboard"
"""The content of a tag of every page, by which a later build finds the pages of an earlier one."""

_ALWAYS_WRITTEN = ("index.html", "about.html")


def check_site_folder(out: Path) -> None:
    """Raise BadInput unless `out` is new, empty or an earlier leaderboard.

    Hidden files, such as those of Git, do not count.
    """
    check_output_folder(out)
    files = [path for path in out.iterdir() if path.name[0] != "."] if out.is_dir() else []
    pages = [out / name for name in _ALWAYS_WRITTEN]
    if files and not all(map(is_own_page, pages)):
        raise BadInput(f"{out} has files that numbench did not write; choose another --out")


def is_own_page(path: Path) -> bool:
    """Return whether a file is a page of a leaderboard."""
    return path.is_file() and f'content="{GENERATOR}"'.encode() in path.read_bytes()


def remove_earlier_pages(out: Path, pages: Iterable[str]) -> None:
    """Remove pages of runs and tasks that an earlier build wrote and this one did not."""
    written = {out / address for address in pages}
    for folder in ("models", "tasks"):
        for path in (out / folder).glob("*.html"):
            if path not in written and is_own_page(path):
                path.unlink()
