"""Create a bundled checkpoint from a training: python -m experiments.ship TRAINING.

Takes the best checkpoint of a completed training on integers of few bits, rounds its weights to
bfloat16, evaluates it on a committed dataset and on newly generated integers of as many bits and of
more, and writes its card. If interrupted, run the same command again. Without TRAINING it only
writes the card again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from bittoken import checkpoint
from bittoken.checkpoint import WEIGHTS
from bittoken.training import metrics_log
from bittoken.training.plots import plot_training
from bittoken.training.recipe import RECIPE_FILE, Recipe
from bittoken.training.run import CHECKPOINT_FOLDER
from experiments.command_line import run_command
from experiments.page import format_chance, format_threads, markdown_table
from experiments.results_store import ScoreEstimate, TrainingScores, score_training
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.jsonl import read_json, write_atomically, write_json
from numbench.reporting.escape import escape_markdown
from numbench.runner import run
from numbench.runner.spec import RunSpec
from numbench.scoring import score_run
from numbench.tasks import PAPER_TASKS, TASKS

CARD, DATASETS, NOTES = "README.md", "datasets.json", "notes.md"
TEMPLATE = Path(__file__).with_name("card.md")

COMMITTED_DATASETS = ("v1",)
SIZE, SEED = 2000, 20261122
"""Items per task and seed of the generated datasets."""

ADDITIONAL_BITS = (-1, 0, 1, 2, 4)
"""The sizes of the generated integers, in bits more than the largest of the training."""


def generated_datasets(recipe: Recipe, size: int = SIZE) -> list[DatasetSettings]:
    """Return datasets of the trained tasks on integers of `ADDITIONAL_BITS`.

    Their items are of the test split, so that no pair of operands was in the training.
    """
    assert recipe.data.bits is not None
    return [
        DatasetSettings(f"bits{bits}", recipe.data.tasks, size=size, seed=SEED, max_bits=bits)
        for bits in (recipe.data.bits + more for more in ADDITIONAL_BITS)
    ]


def ship(
    training: Path,
    out: Path,
    scratch: Path,
    committed: Sequence[str | Path] = COMMITTED_DATASETS,
    size: int = SIZE,
) -> Path:
    """Create the bundled checkpoint in `out` from a training and return the path of its card.

    committed: existing datasets to evaluate on. size: items per task of the generated ones. These
    and all answers are stored in `scratch`. If interrupted, `out` has no scores, and the same call
    resumes. Raises BadInput if the training is not complete or not on integers of few bits, or
    `out` has no notes.
    """
    recipe = read_json(training / RECIPE_FILE, Recipe)
    if recipe.data.bits is None:
        raise BadInput(f"{training}: data.bits is not set; the card is about integers of few bits")
    _check_is_complete(training, recipe)
    if not (out / NOTES).is_file():
        raise BadInput(f"{out / NOTES} is missing; describe there, for the card, where it fails")
    best = checkpoint.load(training / CHECKPOINT_FOLDER)
    for old in (out / DATASETS, *out.glob(scores_file("*"))):
        old.unlink(missing_ok=True)
    checkpoint.save(out, best.network, best.training, dtype=torch.bfloat16)
    for name in (RECIPE_FILE, metrics_log.METRICS_FILE):
        write_atomically(out / name, (training / name).read_bytes())
    generated = [
        generate(settings, scratch / settings.name).dataset
        for settings in generated_datasets(recipe, size)
    ]
    datasets = [*generated, *map(open_dataset, committed)]
    for dataset in datasets:
        answers = scratch / f"answers-{dataset.name}"
        run(RunSpec(f"checkpoint/{out.resolve()}", dataset=dataset.path, out=answers))
        scored = score_run(answers)
        write_json(out / scores_file(dataset.name), score_training(training, scored, recipe))
    write_json(out / DATASETS, [dataset.name for dataset in datasets])
    return write_card(out)


def _check_is_complete(training: Path, recipe: Recipe) -> None:
    validations = metrics_log.validation_entries(metrics_log.read_log(training))
    steps = max((entry["step"] for entry in validations), default=0)
    if steps < recipe.training.steps:
        raise BadInput(
            f"{training}: only {steps:,} of {recipe.training.steps:,} steps are done; "
            "complete the training first"
        )


def write_card(folder: Path) -> Path:
    """Write the card and figures of a bundled checkpoint from the files in its folder."""
    card, path = render_card(folder), folder / CARD
    plot_training(folder)
    write_atomically(path, card.encode())
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.ship", description=__doc__)
    add = parser.add_argument
    add("training", type=Path, nargs="?", metavar="TRAINING", help="folder of `bittoken train`")
    add(
        "--out",
        type=Path,
        default=Path("bench/bittoken/checkpoints/small"),
        help="default: %(default)s",
    )
    add("--scratch", type=Path, default=Path("results/shipping"), help="default: %(default)s")
    options = parser.parse_args(arguments)

    def create() -> int:
        if options.training is None:
            print(write_card(options.out))
        else:
            print(ship(options.training, options.out, options.scratch))
        return 0

    return run_command(create)


def scores_file(dataset: str) -> str:
    """Return the name of the file with the scores on a dataset."""
    return f"scores-{dataset}.json"


def render_card(folder: Path) -> str:
    """Return the card of the checkpoint in `folder` as Markdown.

    It includes the handwritten `notes.md`. Raises BadInput if scores are missing, or are from
    another training than the recipe and the log.
    """
    runs = _read_results(folder)
    recipe = runs[0].recipe
    size = next(iter(runs[0].tasks.values())).items
    trained = next(
        settings
        for settings in generated_datasets(recipe, size)
        if settings.max_bits == recipe.data.bits
    )
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in {
        "NAME": folder.name,
        "FACTS": _fact_table(folder, runs[0]),
        "BITS": f"{recipe.data.bits}",
        "LARGEST": f"{2 ** (recipe.data.bits or 0) - 1}",
        "GENERATE": _generate_command(trained),
        "GENERATED": trained.name,
        "SCORES": _score_table(runs),
        "NOTES": (folder / NOTES).read_text(encoding="utf-8").strip(),
        "MINUTES": f"{runs[0].seconds / 60:.0f}",
    }.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _read_results(folder: Path) -> list[TrainingScores]:
    """Return the scores on every dataset, in order of evaluation."""
    paths = folder.glob(scores_file("*"))
    scores = {run.dataset.name: run for run in (read_json(p, TrainingScores) for p in paths)}
    datasets = folder / DATASETS
    if not datasets.is_file():
        raise BadInput(f"{datasets} is missing; run experiments.ship with the training again")
    names = read_json(datasets, list[str])
    if set(names) != scores.keys():
        raise BadInput(
            f"{folder}: {DATASETS} and the scores are from different datasets; "
            "run experiments.ship with the training again"
        )
    runs = [scores[name] for name in names]
    recipe = read_json(folder / RECIPE_FILE, Recipe)
    last = metrics_log.validation_entries(metrics_log.read_log(folder))[-1]
    expected = (recipe, last["tokens"], last["seconds"], runs[0].model_sha256)
    if any((run.recipe, run.tokens, run.seconds, run.model_sha256) != expected for run in runs):
        raise BadInput(
            f"{folder}: the scores are from another training than the recipe or the log; "
            "run experiments.ship with the training again"
        )
    return runs


def _generate_command(settings: DatasetSettings) -> str:
    options = (
        f"--name {settings.name} --tasks {','.join(settings.tasks)} --max-bits {settings.max_bits}",
        f"--size {settings.size} --seed {settings.seed} --out /tmp/{settings.name}",
    )
    return f"    numbench generate {options[0]} \\\n        {options[1]}"


def _fact_table(folder: Path, run: TrainingScores) -> str:
    recipe, size = run.recipe, (folder / WEIGHTS).stat().st_size
    starts = [entry for entry in metrics_log.read_log(folder) if "event" in entry]
    shape = recipe.model
    rows = {
        "numbers": f"{shape.encoding}, combined by {shape.combination}, {shape.head} head",
        "network": f"{shape.layers} layers, {shape.heads} heads, width {shape.width}: "
        f"{run.parameters:,} parameters",
        "weights": f"bfloat16, {size / 1e6:.1f} MB",
        "trained on": f"{', '.join(TASKS[task].display for task in recipe.data.tasks)}: questions "
        "generated during training with exact answers, about integers of at most "
        f"{recipe.data.bits} bits",
        "not trained on": ", ".join(
            TASKS[task].display for task in PAPER_TASKS if task not in recipe.data.tasks
        )
        + ", text",
        "tokens": f"{run.tokens:,}, {recipe.training.batch_tokens:,} per step",
        "time": f"{run.seconds / 60:.0f} minutes",
        "hardware": f"{escape_markdown(run.device)}; {format_threads(run.threads)}"
        + (f"; in {len(starts)} sessions" if len(starts) > 1 else ""),
        "checkpoint": f"step {run.best_step:,} of {recipe.training.steps:,}, the best validation",
        "created with": f"numbench {run.version}, torch {escape_markdown(run.torch)}",
    }
    return markdown_table(["", ""], rows.items(), "ll")


def _score_table(runs: Sequence[TrainingScores]) -> str:
    """Return a table of the trained tasks, with a column per dataset."""
    header = ["Task", "Metric", "Chance"]
    header += [f"`{_dataset_label(run)}`<br>{_items(run)} per task" for run in runs]
    rows = []
    for task in (task for task in PAPER_TASKS if task in runs[0].recipe.data.tasks):
        scores = [run.tasks[task] for run in runs]
        exact = [_format_estimate(score.exact_match) for score in scores]
        rows.append([TASKS[task].display, "exact match", format_chance(task), *exact])
        smapes = [_format_estimate(score.log_smape) for score in scores if score.log_smape]
        if smapes:
            rows.append([TASKS[task].display, "log-sMAPE", "", *smapes])
    return markdown_table(header, rows, "ll" + "r" * (len(header) - 2))


def _items(run: TrainingScores) -> str:
    return f"{next(iter(run.tasks.values())).items:,}"


def _dataset_label(run: TrainingScores) -> str:
    return f"{run.dataset.name}@{run.dataset.sha256[:6]}"


def _format_estimate(score: ScoreEstimate) -> str:
    return f"{score.value:.1f} {score.interval}"


if __name__ == "__main__":
    sys.exit(main())
