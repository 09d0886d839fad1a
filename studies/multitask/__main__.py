"""Write results/multitask from the stored trainings: python -m studies.multitask.

A training has a folder ENCODING-SEED with `metrics.jsonl` and, once it is complete, `scores.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.lines import Line2D

from numbench.plot_style import FULL_WIDTH, PALETTE
from numbench.stats.intervals import wilson
from studies.multitask.evaluate import TASKS
from studies.pages import fill, markdown_table, svg_figure, write_files

RESULTS = Path("results/multitask")
BUDGET = 999_936
MINIMUM = "minimum"
SEEDS = {"bittoken": (1, 2, 3), "fone": (1, 2, 3), "digit": (1, 2), "xval": (1,)}
TITLES = {"bittoken": "BitTokens", "fone": "FoNE", "digit": "digits", "xval": "xVal"}
RIVALS = ("fone", "digit")
TASK_TITLES = {
    "minmax": "MinMax",
    "interval": "Interval",
    "sorting": "Sorting",
    "addition": "Add",
    "multiplication": "Mult",
}


class Training(NamedTuple):
    """A complete training.

    log: its validations, in questions and the harmonic mean in percent. exact: exact match of each
    task and of their minimum, in percent. margin: the largest distance of a value from its 95%
    bounds.
    """

    encoding: str
    seed: int
    log: list[tuple[int, float]]
    exact: Mapping[str, float]
    margin: float


def name_of(encoding: str, seed: int) -> str:
    """Return what the table calls a training."""
    return f"{TITLES[encoding]}, seed {seed}"


def read_training(folder: Path, encoding: str, seed: int) -> Training | None:
    """Return a training in the folder of all of them, None if it is not complete."""
    run = folder / f"{encoding}-{seed}"
    if not (run / "scores.json").is_file():
        return None
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    entries: list[dict[str, Any]] = [entry for entry in map(json.loads, lines) if "tasks" in entry]
    log = [(entry["questions"], 100 * float(entry["harmonic_mean"] or 0)) for entry in entries]
    if log[-1][0] < BUDGET:
        return None
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))["tasks"]
    exact, margin = {}, 0.0
    for task in TASKS:
        correct, questions = scores[task]["correct"], scores[task]["questions"]
        exact[task] = 100 * correct / questions
        *_, low, high = wilson(correct, questions)
        margin = max(margin, exact[task] - 100 * low, 100 * high - exact[task])
    return Training(encoding, seed, log, {**exact, MINIMUM: min(exact.values())}, margin)


def read_trainings(folder: Path) -> list[Training]:
    """Return the complete trainings in a folder, in the order of the plan."""
    declared = [(encoding, seed) for encoding in SEEDS for seed in SEEDS[encoding]]
    found = (read_training(folder, *run) for run in declared)
    return [training for training in found if training is not None]


def compare(trainings: list[Training], rival: str, measure: str) -> str:
    """Return the verdict of the plan about BitTokens and a rival."""
    own, others = (
        [training.exact[measure] for training in trainings if training.encoding == encoding]
        for encoding in ("bittoken", rival)
    )
    if min(own) > max(others):
        return "BitTokens lead"
    return "BitTokens trail" if max(own) < min(others) else "not separated"


def chance(trainings: list[Training], rival: str) -> str:
    """Return how likely equal encodings would lead or trail with these numbers of seeds."""
    seeds = Counter(training.encoding for training in trainings)
    return str(Fraction(2, comb(seeds["bittoken"] + seeds[rival], seeds[rival])))


def render(folder: Path) -> dict[str, bytes]:
    """Return the page and its figure, by name."""
    trainings = read_trainings(folder)
    complete = {(training.encoding, training.seed) for training in trainings}
    declared = [(encoding, seed) for encoding in SEEDS for seed in SEEDS[encoding]]
    missing = [name_of(*run) for run in declared if run not in complete]
    measures = {MINIMUM: "minimum of the five tasks", **TASK_TITLES}
    verdicts = pd.DataFrame(
        {
            TITLES[rival]: {title: compare(trainings, rival, m) for m, title in measures.items()}
            | {"probability that either leads if equal": chance(trainings, rival)}
            for rival in RIVALS
        }
    )
    files: dict[str, bytes] = {}
    draw(files, trainings)
    values = {
        "headline": "; ".join(
            f"{TITLES[rival]}: {compare(trainings, rival, MINIMUM)}" for rival in RIVALS
        ),
        "table": markdown_table(score_table(trainings)),
        "verdicts": markdown_table(verdicts),
        "margin": f"{max(training.margin for training in trainings):.1f}",
        "missing": f"Declared, but not trained for lack of time: {'; '.join(missing)}."
        if missing
        else "All declared trainings are complete.",
    }
    return {"README.md": fill(Path(__file__).with_name("page.md"), values), **files}


def score_table(trainings: list[Training]) -> pd.DataFrame:
    """Return a row per training."""
    rows = {}
    for training in trainings:
        row = [f"{training.exact[measure]:.1f}" for measure in (MINIMUM, *TASKS)]
        for target in (50, 90):
            reached = next((n for n, mean in training.log if mean >= target), None)
            row.append(f"{reached:,}" if reached else "not reached")
        rows[name_of(training.encoding, training.seed)] = row
    titles = ["Minimum", *TASK_TITLES.values(), "Questions to 50%", "to 90%"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=titles)


def draw(files: dict[str, bytes], trainings: list[Training]) -> None:
    """Draw the exact match of each task, and the harmonic mean over the questions seen."""
    columns = [MINIMUM, *TASKS]
    with svg_figure(files, "scores.svg", (FULL_WIDTH, 2.8)) as figure:
        scores, curves = figure.subplots(1, 2, width_ratios=(1.3, 1))
        for number, encoding in enumerate(SEEDS):
            of = [training for training in trainings if training.encoding == encoding]
            for training in of:
                x = [index + 0.16 * (number - 1.5) for index in range(len(columns))]
                y = [training.exact[column] for column in columns]
                scores.plot(x, y, "o", color=PALETTE[number], markersize=3.5, alpha=0.8)
                questions = [n / 1e6 for n, _ in training.log]
                means = [mean for _, mean in training.log]
                curves.plot(questions, means, color=PALETTE[number], linewidth=0.8)
        scores.set_xticks(range(len(columns)), ["minimum", *TASK_TITLES.values()])
        scores.set_ylabel("exact match, %")
        curves.set(xlabel="questions seen, millions", ylabel="harmonic mean of validation, %")
        curves.set_xlim(0, BUDGET / 1e6)
        for axes in (scores, curves):
            axes.set_ylim(-2, 102)
            axes.grid(visible=True, axis="y")
        handles = [
            Line2D([], [], color=PALETTE[number], marker="o", markersize=3.5, label=TITLES[name])
            for number, name in enumerate(SEEDS)
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))


if __name__ == "__main__":
    write_files(RESULTS, render(RESULTS))
