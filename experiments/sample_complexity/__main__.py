"""Write the page and figures from the stored runs: python -m experiments.sample_complexity."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command_line import run_command
from experiments.comparison import read_comparison
from experiments.sample_complexity.figures import plot_curves, plot_growth
from experiments.sample_complexity.outcomes import Outcomes, read_outcomes
from experiments.sample_complexity.page import render_page
from experiments.sample_complexity.rates import chosen_rates, rate_table
from numbench.errors import BadInput
from numbench.jsonl import write_atomically

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.sample_complexity", description=__doc__
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
