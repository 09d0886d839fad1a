"""Write the page and figure from the stored runs: python -m experiments.representations."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command_line import run_command
from experiments.comparison import read_comparison
from experiments.representations.contrasts import BITS, ENCODINGS
from experiments.representations.page import OPERATIONS, render_page, title
from experiments.representations.rates import rate_table
from experiments.sample_complexity.figures import CurveStyle, plot_curves
from experiments.sample_complexity.outcomes import read_outcomes
from numbench.errors import BadInput
from numbench.jsonl import write_atomically
from numbench.plot_style import LINE_PATTERNS, PALETTE

HERE = Path(__file__).parent
RESULTS = Path("results/representations")

CURVES = {
    encoding: CurveStyle(title(base, form), colour, LINE_PATTERNS[form == "fixed"])
    for (base, forms), colour in zip(ENCODINGS.items(), PALETTE, strict=False)
    for form, encoding in forms.items()
}
"""Colours tell the base, dashed lines are fixed point."""


def render(folder: Path) -> dict[str, bytes]:
    """Return the content of every file, by its name in `folder`, which contains the runs."""
    runs, sweep = (read_comparison(HERE / name) for name in ("runs.toml", "sweep.toml"))
    outcomes, missing = read_outcomes(runs, folder / "runs")
    if not outcomes:
        raise BadInput(f"{folder}: contains no runs; python -m experiments.queue trains the runs")
    text = (HERE / "page.md").read_text(encoding="utf-8")
    page = render_page(text, outcomes, missing, rate_table(sweep, folder / "sweep"))
    panels = [(task, BITS, 0) for task in OPERATIONS]
    return {"README.md": page.encode(), "curves.svg": plot_curves(outcomes, panels, CURVES)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.representations", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="default: %(default)s")
    options = parser.parse_args(arguments)

    def write() -> int:
        for name, data in render(options.out).items():
            write_atomically(options.out / name, data)
            print(options.out / name)
        return 0

    return run_command(write)


if __name__ == "__main__":
    sys.exit(main())
