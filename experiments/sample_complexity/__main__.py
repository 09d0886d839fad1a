"""Write the page and figures from the stored runs: python -m experiments.sample_complexity."""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.command_line import write_pages
from experiments.comparison import read_comparison
from experiments.sample_complexity.figures import plot_curves, plot_growth
from experiments.sample_complexity.outcomes import Outcomes, read_outcomes
from experiments.sample_complexity.page import render_page
from experiments.sample_complexity.rates import chosen_rates, rate_table
from numbench.errors import BadInput

HERE = Path(__file__).parent
RESULTS = Path("results/sample-complexity")
PAGE = "README.md"


def render(folder: Path) -> dict[str, bytes]:
    """Return the content of every file, by its name in `folder`, which contains the runs."""
    runs, sweep = (read_comparison(HERE / name) for name in ("runs.toml", "sweep.toml"))
    outcomes, missing = read_outcomes(runs, folder / "runs")
    if not outcomes:
        raise BadInput(f"{folder}: contains no runs; python -m experiments.queue trains the runs")
    text = (HERE / "page.md").read_text(encoding="utf-8")
    rates = rate_table(chosen_rates(sweep, folder / "sweep"))
    files = {PAGE: render_page(text, outcomes, missing, rates).encode()}
    tasks = [t for t in ("multiplication", "addition", "division") if _sizes(t, outcomes)]
    files["growth.svg"] = plot_growth(outcomes, tasks)
    for task in tasks:
        files[f"curves-{task}.svg"] = plot_curves(outcomes, _sizes(task, outcomes))
    return files


def _sizes(task: str, outcomes: Outcomes) -> list[tuple[str, int, int]]:
    """Return task, bits and shift of the panels of a task's curves."""
    return sorted({(c.task, c.bits, c.shift) for c in outcomes if c.task == task})


if __name__ == "__main__":
    sys.exit(write_pages("experiments.sample_complexity", __doc__, render, RESULTS))
