"""Write the page and curves of results/trained/ from its runs: python -m experiments.tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command_line import run_command
from experiments.comparison import read_comparison
from experiments.learning_curves import FORMATS, plot_learning_curves
from experiments.page import FINDINGS, has_comparison, read_findings, read_runs, render_page
from experiments.results_store import RESULTS
from experiments.sample_complexity.__main__ import HERE
from experiments.sample_complexity.__main__ import RESULTS as SAMPLE_COMPLEXITY
from experiments.sample_complexity.outcomes import read_outcomes
from experiments.sample_complexity.page import summary
from experiments.table_layout import read_layout
from numbench.errors import BadInput
from numbench.jsonl import write_atomically

PAGE, CURVES = "README.md", "curves"


def write_tables(folder: Path) -> list[Path]:
    """Write the page and its curves into `folder`, which contains the runs; return the files."""
    layouts, stored = read_layout(), read_runs(folder)
    if not stored:
        raise BadInput(f"{folder}: contains no runs; python -m experiments.queue trains them")
    text = render_page(layouts, stored, read_findings(folder / FINDINGS, layouts), lead())
    files = {folder / PAGE: text.encode()}
    for layout in layouts:
        paths = {form: folder / CURVES / f"{layout.name}.{form}" for form in FORMATS}
        if has_comparison(layout, stored):
            rendered = plot_learning_curves(layout, stored, folder)
            files |= {path: rendered[form] for form, path in paths.items()}
        else:
            for path in paths.values():
                path.unlink(missing_ok=True)
    for path, data in files.items():
        write_atomically(path, data)
    return list(files)


def lead() -> str:
    """Return what the experiment on short integers shows, for the top of the page."""
    outcomes, _ = read_outcomes(read_comparison(HERE / "runs.toml"), SAMPLE_COMPLEXITY / "runs")
    return summary(outcomes, bits=8)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.tables", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="default: %(default)s")
    options = parser.parse_args(arguments)

    def write() -> int:
        for path in write_tables(options.out):
            print(path)
        return 0

    return run_command(write)


if __name__ == "__main__":
    sys.exit(main())
