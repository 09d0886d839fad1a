"""Make a checkpoint that comes with the package: python -m experiments.ship TRAINING.

Takes the best checkpoint of a training that has ended, rounds its weights to bfloat16, asks it
committed datasets and new items that are in no repository, and writes its card from what came of
it. The same command goes on where it stopped. Without TRAINING it only writes the card again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from bench.bittoken import checkpoint
from bench.bittoken.training import log
from bench.bittoken.training.plots import redraw
from bench.bittoken.training.recipe import Recipe
from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.dataset.store import open_dataset
from bench.errors import BadInput
from bench.jsonl import read_json, write_atomically, write_json
from bench.runner import run
from bench.runner.spec import RunSpec
from bench.scoring import score_run
from experiments.card import CARD, DIFFICULTY, KNOWN, NEW, NOTES, card, scores_file
from experiments.command import ending
from experiments.kept import CHECKPOINT, RECIPE, scored
from experiments.thirds import thirds


def ship(
    training: Path,
    out: Path,
    scratch: Path,
    known: Sequence[str | Path] = KNOWN,
    new: Sequence[Settings] = NEW,
) -> Path:
    """Make `out` of the training and return its card.

    known: committed datasets to ask; new: what makes the others. These and all answers lie in
    `scratch`. BadInput where the training has not ended, or where `out` has no notes. Interrupted,
    it leaves a folder without scores, and the same call goes on.
    """
    recipe = read_json(training / RECIPE, Recipe)
    steps = max((line["step"] for line in log.measures(log.read(training))), default=0)
    if steps < recipe.training.steps:
        raise BadInput(
            f"{training}: only {steps:,} of {recipe.training.steps:,} steps are done; "
            "let it end first"
        )
    if not (out / NOTES).is_file():
        raise BadInput(f"{out / NOTES} is missing: write there, for the card, where it fails")
    best = checkpoint.load(training / CHECKPOINT)
    for old in (out / DIFFICULTY, *out.glob(scores_file("*"))):
        old.unlink(missing_ok=True)
    checkpoint.save(out, best.network, best.training, dtype=torch.bfloat16)
    for name in (RECIPE, log.FILE):
        write_atomically(out / name, (training / name).read_bytes())
    made = [generate(settings, scratch / settings.name, workers=2).dataset for settings in new]
    by_difficulty = {}
    for dataset in (*map(open_dataset, known), *made):
        answers = scratch / f"answers-{dataset.name}"
        run(RunSpec(f"checkpoint/{out.resolve()}", dataset=dataset.path, out=answers))
        judged = score_run(answers)
        write_json(out / scores_file(dataset.name), scored(training, judged, recipe))
        by_difficulty[dataset.name] = thirds(judged, recipe.data.tasks)
    write_json(out / DIFFICULTY, by_difficulty)
    return write_card(out)


def write_card(folder: Path) -> Path:
    """Write the card of a shipped checkpoint, and its figures, from what lies beside it."""
    redraw(folder)
    path = folder / CARD
    write_atomically(path, card(folder).encode())
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: errors speak to people."""
    parser = argparse.ArgumentParser(prog="python -m experiments.ship", description=__doc__)
    add = parser.add_argument
    add("training", type=Path, nargs="?", metavar="TRAINING", help="folder of `numbench train`")
    add("--out", type=Path, default=Path("checkpoints/small"), help="default: %(default)s")
    add("--scratch", type=Path, default=Path("results/shipping"), help="default: %(default)s")
    given = parser.parse_args(arguments)

    def work() -> int:
        if given.training is None:
            print(write_card(given.out))
        else:
            print(ship(given.training, given.out, given.scratch))
        return 0

    return ending(work)


if __name__ == "__main__":
    sys.exit(main())
