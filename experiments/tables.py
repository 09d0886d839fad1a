"""Write the page of results/trained/ from what is kept there: python -m experiments.tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import BadInput
from bench.jsonl import write_atomically
from experiments.cells import compared, read_kept
from experiments.command import ending
from experiments.curves import FORMS, curves
from experiments.kept import RESULTS
from experiments.layout import read_layout
from experiments.page import FINDINGS, page, read_findings

PAGE, CURVES = "README.md", "curves"


def write_tables(folder: Path) -> list[Path]:
    """Write the page and its curves into `folder`, where the runs are kept; the files written."""
    layouts, kept = read_layout(), read_kept(folder)
    if not kept:
        raise BadInput(f"{folder}: no run is kept here; python -m experiments.queue makes them")
    text = page(layouts, kept, read_findings(folder / FINDINGS, layouts))
    files = {folder / PAGE: text.encode()}
    for layout in layouts:
        paths = {form: folder / CURVES / f"{layout.name}.{form}" for form in FORMS}
        if compared(layout, kept):
            drawn = curves(layout, kept, folder)
            files |= {path: drawn[form] for form, path in paths.items()}
        else:
            for path in paths.values():
                path.unlink(missing_ok=True)
    for path, data in files.items():
        write_atomically(path, data)
    return list(files)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: errors speak to people."""
    parser = argparse.ArgumentParser(prog="python -m experiments.tables", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="default: %(default)s")
    given = parser.parse_args(arguments)

    def work() -> int:
        for path in write_tables(given.out):
            print(path)
        return 0

    return ending(work)


if __name__ == "__main__":
    sys.exit(main())
