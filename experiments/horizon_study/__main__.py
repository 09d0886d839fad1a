"""Fit horizons to the published study's responses: python -m experiments.horizon_study FOLDER."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command_line import run_command
from experiments.horizon_study.figures import plot_curves, plot_replays
from experiments.horizon_study.page import HEADER, csv_rows, render_page
from experiments.horizon_study.replay import PROMPT_TOKENS, replays
from experiments.horizon_study.responses import Responses, fit, read_responses
from numbench.jsonl import write_atomically
from numbench.reporting.table_model import to_csv

HERE = Path(__file__).parent
RESULTS = Path("results/horizon-study")


def render(responses: Responses) -> dict[str, bytes]:
    """Return the content of every file, by its name."""
    fits = {
        task: {config: fit(outcomes) for config, outcomes in by_config.items() if outcomes}
        for task, by_config in responses.items()
    }
    replayed = {
        task: {config: replays(responses[task][config]) for config in by_config}
        for task, by_config in fits.items()
    }
    tokens = {
        task: {
            config: sum(
                PROMPT_TOKENS + (outcome.tokens or 0) for outcome in responses[task][config]
            )
            for config in by_config
        }
        for task, by_config in fits.items()
    }
    text = (HERE / "page.md").read_text(encoding="utf-8")
    files = {f"curves-{task}.svg": plot_curves(task, of_task) for task, of_task in fits.items()}
    files["replays.svg"] = plot_replays(fits, replayed)
    files["horizons.csv"] = to_csv(HEADER, list(csv_rows(fits, replayed, tokens))).encode()
    return {"README.md": render_page(text, fits, replayed, tokens).encode(), **files}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.horizon_study", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="the study's files (frontier_results)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="default: %(default)s")
    options = parser.parse_args(arguments)

    def write() -> int:
        for name, data in render(read_responses(options.folder)).items():
            write_atomically(options.out / name, data)
            print(options.out / name)
        return 0

    return run_command(write)


if __name__ == "__main__":
    sys.exit(main())
