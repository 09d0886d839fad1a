"""Find what the paper's raw responses are equal to: python -m studies.forensics FOLDER."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from studies.csv_tables import from_csv, to_csv
from studies.forensics.page import render
from studies.forensics.tables import compute
from studies.pages import write_study_pages
from studies.raw_responses import import_study

RESULTS = Path("results/forensics")


def build(responses: Path) -> dict[str, bytes]:
    """Return the content of every file by its name, from the folder of the paper's responses."""
    with tempfile.TemporaryDirectory() as runs:
        files = to_csv(compute(import_study(responses, Path(runs))))
    return files | render(from_csv(files))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return write_study_pages("studies.forensics", __doc__, build, RESULTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
