"""An example report and a leaderboard for the site: a baseline beside the published models."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import numbench
from numbench.leaderboard import write_leaderboard

LINKS = (
    '<p><a href="example/report.html">An example report</a> and '
    '<a href="leaderboard/index.html">a leaderboard</a> of the thirteen published configurations '
    "and float64 arithmetic.</p>"
)


def write_example(site: Path, with_leaderboard: bool = True) -> None:
    """Write example/ and leaderboard/ to the site."""
    site = site.resolve()
    # The pages name the folder of the run.
    with TemporaryDirectory() as folder, chdir(folder):
        run = numbench.run(
            model="baseline/float64", dataset="paper", out="results/float64",
            on_progress=lambda _: None,
        )  # fmt: skip
        numbench.report([run.path], out=site / "example")
        if with_leaderboard:
            write_leaderboard([run.path], site / "leaderboard")
