"""Score the paper's raw responses by exact answers: python -m studies.rescored FOLDER."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from studies.csv_tables import from_csv, to_csv
from studies.pages import write_study_pages
from studies.raw_responses import import_study
from studies.rescored.page import render
from studies.rescored.tables import compute

RESULTS = Path("results/rescored-study")


def build(responses: Path) -> dict[str, bytes]:
    """Return the content of every file by its name, from the folder of the paper's responses."""
    with tempfile.TemporaryDirectory() as runs:
        tables = compute(responses, import_study(responses, Path(runs)))
    files = to_csv(tables)
    return files | render(from_csv(files))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return write_study_pages("studies.rescored", __doc__, build, RESULTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
