"""Reads the study, and writes the page with all that belongs to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench import jsonl
from bench.report import report
from bench.report.grid import to_csv
from bench.rescore import Rescored
from bench.rescore.drawings import FORMATS, NAMES, draw
from bench.rescore.ladder import REPAIRS
from bench.rescore.page import render, reproduced
from bench.rescore.study import Study, read_study
from bench.rescore.tables import files_csv


def build(folder: Path, out: Path, say: Callable[[str], None] | None) -> Rescored:
    """As `bench.rescore.rescore`."""
    study = read_study(folder, out / "runs", _to_stderr if say is None else say)
    reports = _reports(study, out / "report")
    _write_figures(draw(study), out / "figures")
    scores = to_csv(HEADER, list(score_rows(study)))
    jsonl.write_atomically(out / "rescored.csv", scores.encode())
    files = to_csv(("file", "task", "bytes", "sha256"), files_csv(study))
    jsonl.write_atomically(out / "files.csv", files.encode())
    page = out / "README.md"
    jsonl.write_atomically(page, render(study).encode())
    right, printed = reproduced(study)
    labels = sum(own.n for own in study.labels), sum(len(own.wrong) for own in study.labels)
    return Rescored(out, page, reports, labels, (len(study.scores), right, printed))


HEADER = (
    "Model",
    "Reasoning",
    "Task",
    "Metric",
    "published",
    "study_scoring",
    *(f"after_{repair.name}" for repair in REPAIRS[:-1]),
    "exact",
    "exact_low",
    "exact_high",
    "n",
    *(f"change_{repair.name}" for repair in REPAIRS),
    "change",
)
"""`rescored.csv`: scores in percent, changes in points; `published` is the paper's own figure."""


def score_rows(study: Study) -> Iterator[list[str]]:
    """One row per configuration, task and metric; the changes of a row add up exactly."""
    for score in study.scores:
        ladder = score.ladder
        bounds = (score.estimate.low, score.estimate.high)
        yield [
            *score.config,
            ladder.task,
            ladder.metric,
            score.printed or "",
            *map(str, ladder.rungs),
            *("" if bound is None else f"{bound:.2f}" for bound in bounds),
            str(ladder.n),
            *map(str, ladder.steps),
            str(ladder.exact - ladder.published),
        ]


def _reports(study: Study, out: Path) -> tuple[Path, ...]:
    """The full report under each protocol; none without responses."""
    if not study.folders:
        return ()
    exact = report(study.folders, "exact", out=out / "exact")
    paper = report(study.folders, "paper", out=out / "paper")
    return exact.out / "report.html", paper.out / "report.html"


def _write_figures(drawn: Mapping[str, Mapping[str, bytes]], out: Path) -> None:
    """Write the figures; those that only an earlier page here had are removed."""
    for name in NAMES:
        for form in FORMATS:
            path = out / f"{name}.{form}"
            if name in drawn:
                jsonl.write_atomically(path, drawn[name][form])
            else:
                path.unlink(missing_ok=True)


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr)
