"""Create a bundled checkpoint from a training: python -m experiments.ship TRAINING.

Takes the best checkpoint of a completed training, rounds its weights to bfloat16, evaluates it on
committed datasets and on newly generated items that are in no repository, and writes its card. If
interrupted, run the same command again. Without TRAINING it only writes the card again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from experiments.command_line import run_command
from experiments.difficulty_terciles import DifficultyTercile, score_by_tercile
from experiments.page import format_chance, format_threads, markdown_table
from experiments.results_store import ScoreEstimate, TrainingScores, score_training
from numbench.bittoken import checkpoint
from numbench.bittoken.checkpoint import WEIGHTS
from numbench.bittoken.training import metrics_log
from numbench.bittoken.training.plots import plot_training
from numbench.bittoken.training.recipe import RECIPE_FILE, Recipe
from numbench.bittoken.training.run import CHECKPOINT_FOLDER
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

CARD, DIFFICULTY, NOTES = "README.md", "difficulty.json", "notes.md"
TEMPLATE = Path(__file__).with_name("card.md")

COMMITTED_DATASETS = ("v1", "short")
GENERATED_DATASETS = (
    DatasetSettings(name="new", size=2000, seed=20261121),
    DatasetSettings(name="new-short", size=2000, seed=20261121, max_digits=4),
)
"""Items of the test split that are in no repository; the seed generates them anywhere."""

METRIC_NAMES = {"exact_match": "exact match", "log_smape": "log-sMAPE"}


def ship(
    training: Path,
    out: Path,
    scratch: Path,
    committed: Sequence[str | Path] = COMMITTED_DATASETS,
    generated: Sequence[DatasetSettings] = GENERATED_DATASETS,
) -> Path:
    """Create the bundled checkpoint in `out` from a training and return the path of its card.

    committed: existing datasets to evaluate on; generated: settings of the others. Generated
    datasets and all answers are stored in `scratch`. If interrupted, `out` has no scores, and the
    same call resumes. Raises BadInput if the training is not complete, or `out` has no notes.
    """
    recipe = read_json(training / RECIPE_FILE, Recipe)
    _check_is_complete(training, recipe)
    if not (out / NOTES).is_file():
        raise BadInput(f"{out / NOTES} is missing; describe there, for the card, where it fails")
    best = checkpoint.load(training / CHECKPOINT_FOLDER)
    for old in (out / DIFFICULTY, *out.glob(scores_file("*"))):
        old.unlink(missing_ok=True)
    checkpoint.save(out, best.network, best.training, dtype=torch.bfloat16)
    for name in (RECIPE_FILE, metrics_log.METRICS_FILE):
        write_atomically(out / name, (training / name).read_bytes())
    new = [generate(settings, scratch / settings.name).dataset for settings in generated]
    by_difficulty = {}
    for dataset in (*map(open_dataset, committed), *new):
        answers = scratch / f"answers-{dataset.name}"
        run(RunSpec(f"checkpoint/{out.resolve()}", dataset=dataset.path, out=answers))
        scored = score_run(answers)
        write_json(out / scores_file(dataset.name), score_training(training, scored, recipe))
        by_difficulty[dataset.name] = score_by_tercile(scored, recipe.data.tasks)
    write_json(out / DIFFICULTY, by_difficulty)
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
    add("training", type=Path, nargs="?", metavar="TRAINING", help="folder of `numbench train`")
    add("--out", type=Path, default=Path("checkpoints/small"), help="default: %(default)s")
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
    runs, terciles = _read_results(folder)
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in {
        "NAME": folder.name,
        "FACTS": _fact_table(folder, runs[0]),
        "DIGITS": f"{runs[0].recipe.data.digits}",
        "MAKE": "\n".join(map(_generate_command, GENERATED_DATASETS)),
        "NEW": GENERATED_DATASETS[0].name,
        "NEW_NAMES": " and ".join(f"`{settings.name}`" for settings in GENERATED_DATASETS),
        "SCORES": _score_table(runs),
        "THIRDS": "\n\n".join(
            _tercile_table(scores, terciles[scores.dataset.name])
            for scores in runs[-len(GENERATED_DATASETS) :]
        ),
        "NOTES": (folder / NOTES).read_text(encoding="utf-8").strip(),
        "MINUTES": f"{runs[0].seconds / 60:.0f}",
    }.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _read_results(
    folder: Path,
) -> tuple[list[TrainingScores], dict[str, dict[str, list[DifficultyTercile]]]]:
    """Return the scores on every dataset, in order of evaluation, and the terciles by dataset."""
    paths = folder.glob(scores_file("*"))
    scores = {run.dataset.name: run for run in (read_json(p, TrainingScores) for p in paths)}
    difficulty = folder / DIFFICULTY
    if not difficulty.is_file():
        raise BadInput(f"{difficulty} is missing; run experiments.ship with the training again")
    terciles = read_json(difficulty, dict[str, dict[str, list[DifficultyTercile]]])
    if terciles.keys() != scores.keys():
        raise BadInput(
            f"{folder}: {DIFFICULTY} and the scores are from different datasets; "
            "run experiments.ship with the training again"
        )
    runs = [scores[name] for name in terciles]
    recipe = read_json(folder / RECIPE_FILE, Recipe)
    last = metrics_log.validation_entries(metrics_log.read_log(folder))[-1]
    expected = (recipe, last["tokens"], last["seconds"], runs[0].model_sha256)
    if any((run.recipe, run.tokens, run.seconds, run.model_sha256) != expected for run in runs):
        raise BadInput(
            f"{folder}: the scores are from another training than the recipe or the log; "
            "run experiments.ship with the training again"
        )
    return runs, terciles


def _generate_command(settings: DatasetSettings) -> str:
    digits = "" if settings.max_digits == 15 else f" --max-digits {settings.max_digits}"
    options = f"--name {settings.name} --size {settings.size} --seed {settings.seed}{digits}"
    return f"    numbench generate {options} --out /tmp/{settings.name}"


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
        f"generated during training with exact answers, up to {recipe.data.digits} digits per "
        "operand, easy ones first",
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
    datasets = [
        f"`{_dataset_label(run)}`<br>{run.tasks['minmax'].items:,} per task" for run in runs
    ]
    rows = []
    trained = runs[0].recipe.data.tasks
    tasks = [task for task in PAPER_TASKS if all(task in run.tasks for run in runs)]
    for task in tasks:
        name = TASKS[task].display if task in trained else f"({TASKS[task].display})"
        scores = [run.tasks[task] for run in runs]
        if TASKS[task].metric == "log_smape":
            smapes = [score.log_smape for score in scores if score.log_smape]
            rows.append([name, "log-sMAPE", "", *map(_format_estimate, smapes)])
            if task not in trained:
                continue
        exact = [_format_estimate(score.exact_match) for score in scores]
        rows.append([name, "exact match", format_chance(task), *exact])
    header = ["Task", "Metric", "Chance", *datasets]
    return markdown_table(header, rows, "ll" + "r" * (len(header) - 2))


def _tercile_table(run: TrainingScores, terciles: dict[str, list[DifficultyTercile]]) -> str:
    header = [f"`{_dataset_label(run)}`", "Metric", "Difficulty δ", "Items", "Chance", "Score"]
    rows = [
        [
            TASKS[task].display,
            METRIC_NAMES[TASKS[task].metric],
            f"{tercile.easiest:,}–{tercile.hardest:,}",
            f"{tercile.items:,}",
            "" if tercile.chance is None else f"{tercile.chance:.1f}",
            _format_estimate(tercile.score),
        ]
        for task, of_task in terciles.items()
        for tercile in of_task
    ]
    return markdown_table(header, rows, "llrrrr")


def _dataset_label(run: TrainingScores) -> str:
    return f"{run.dataset.name}@{run.dataset.sha256[:6]}"


def _format_estimate(score: ScoreEstimate) -> str:
    return f"{score.value:.1f} {score.interval}"


if __name__ == "__main__":
    sys.exit(main())
