"""Write the page and figure from the stored runs: python -m experiments.representations."""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.command_line import write_pages
from experiments.comparison import read_comparison
from experiments.representations.contrasts import BITS, ENCODINGS
from experiments.representations.page import OPERATIONS, render_page, title
from experiments.representations.rates import rate_table
from experiments.sample_complexity.figures import CurveStyle, plot_curves
from experiments.sample_complexity.outcomes import read_outcomes
from numbench.errors import BadInput
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


if __name__ == "__main__":
    sys.exit(write_pages("experiments.representations", __doc__, render, RESULTS))
