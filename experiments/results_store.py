"""The stored results of a training: its recipe, metrics log, and scores of its best checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from bittoken.training import metrics_log
from bittoken.training.metrics_log import LogEntry
from bittoken.training.recipe import RECIPE_FILE, Recipe
from bittoken.training.run import CHECKPOINT_FOLDER
from numbench._version import __version__
from numbench.errors import NumbenchError
from numbench.jsonl import read_json, write_atomically, write_json
from numbench.reporting.entries import measure
from numbench.reporting.table_model import EXACT_MATCH, LOG_SMAPE, Estimate
from numbench.scoring import ScoredRun, score_run
from numbench.tasks import TASKS

RESULTS = Path("results/trained")
SCORES_FILE = "scores.json"


class ScoreEstimate(Struct, frozen=True):
    """A mean in percent with its 95 % interval over items."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> str:
        """The interval as text, in parentheses."""
        return f"({self.low:.1f}–{self.high:.1f})"


class TaskScore(Struct, frozen=True):
    """Scores of one task; `log_smape` is None for tasks that are scored by exact match only."""

    items: int
    exact_match: ScoreEstimate
    log_smape: ScoreEstimate | None

    @property
    def headline(self) -> ScoreEstimate:
        """The score in the task's headline metric."""
        return self.log_smape or self.exact_match


class NamedHash(Struct, frozen=True):
    """Name and hash of a dataset or a prompt set."""

    name: str
    sha256: str


class TrainingScores(Struct, frozen=True, kw_only=True):
    """The scores of a training's best checkpoint, the content of `scores.json`.

    dataset, prompt, protocol: how the checkpoint was evaluated. model_sha256: hash of the
    checkpoint. seconds: training time over all sessions. tokens_a_question: mean tokens per
    question in the validations, in which every task has the same share of tokens, or in the
    training if validations are sized in items. best_step: step of the checkpoint.
    """

    run: str
    tasks: dict[str, TaskScore]
    dataset: NamedHash
    prompt: NamedHash
    protocol: str
    model_sha256: str
    parameters: int
    tokens: int
    seconds: float
    tokens_a_question: float
    best_step: int
    device: str
    threads: int
    torch: str
    version: str
    recipe: Recipe

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return self.recipe.training.seed


def read_scores(folder: Path) -> TrainingScores | None:
    """Return the stored scores in `folder`, None if there are none."""
    path = folder / SCORES_FILE
    return read_json(path, TrainingScores) if path.is_file() else None


def store_run(scratch: Path, answers: Path, recipe: Recipe, folder: Path) -> TrainingScores:
    """Score the `answers` of the completed training in `scratch` and store the results in `folder`.

    The scores are written last, so that a folder with scores is complete. Raises NumbenchError if
    an item was not answered.
    """
    scores = score_training(scratch, score_run(answers), recipe)
    (folder / SCORES_FILE).unlink(missing_ok=True)
    store_log(scratch, recipe, folder)
    write_json(folder / SCORES_FILE, scores)
    return scores


def store_log(scratch: Path, recipe: Recipe, folder: Path) -> None:
    """Store recipe and metrics log of the completed training in `scratch`; the log is last."""
    (folder / metrics_log.METRICS_FILE).unlink(missing_ok=True)
    write_json(folder / RECIPE_FILE, recipe)
    write_atomically(
        folder / metrics_log.METRICS_FILE, (scratch / metrics_log.METRICS_FILE).read_bytes()
    )


def read_logged_recipe(folder: Path) -> Recipe | None:
    """Return the recipe of the training whose log is stored in `folder`, None if there is none."""
    if not (folder / metrics_log.METRICS_FILE).is_file():
        return None
    return read_json(folder / RECIPE_FILE, Recipe)


def score_training(training: Path, run: ScoredRun, recipe: Recipe) -> TrainingScores:
    """Return the scores of a run of the checkpoint in the folder `training`.

    Raises NumbenchError if an item was not answered.
    """
    (measured,) = measure([run])
    for task, cell in measured.cells.items():
        if cell.counted != cell.n:
            raise NumbenchError(
                f"{run.path}: {cell.n - cell.counted} of {cell.n} items of {task} were "
                "not answered; delete this folder and run again"
            )
    entries = metrics_log.read_log(training)
    start = next(entry for entry in reversed(entries) if "event" in entry)
    validations = metrics_log.validation_entries(entries)
    last = validations[-1]
    trained = read_json(training / CHECKPOINT_FOLDER / "config.json", dict[str, Any])["training"]
    tables = measured.entry.tables
    return TrainingScores(
        run=recipe.name,
        tasks={task: _task_score(task, cell.n, tables) for task, cell in measured.cells.items()},
        dataset=NamedHash(run.dataset.name, run.dataset.manifest.sha256),
        prompt=NamedHash(run.info.prompt.name, run.info.prompt.sha256),
        protocol=run.protocol,
        model_sha256=str(run.info.settings["model_sha256"]),
        parameters=start["parameters"],
        tokens=last["tokens"],
        seconds=last["seconds"],
        tokens_a_question=_tokens_per_question(recipe, validations),
        best_step=trained["step"],
        device=start["device"],
        threads=start["threads"],
        torch=start["torch"],
        version=__version__,
        recipe=recipe,
    )


def _tokens_per_question(recipe: Recipe, validations: list[LogEntry]) -> float:
    if not recipe.training.validation_tokens:
        return round(float(validations[-1]["tokens"] / validations[-1]["questions"]), 1)
    questions = sum(task["items"] for entry in validations for task in entry["tasks"].values())
    return round(float(recipe.training.validation_tokens * len(validations) / questions), 1)


def _task_score(task: str, items: int, tables: dict[str, dict[str, Estimate]]) -> TaskScore:
    if TASKS[task].metric != "log_smape":
        return TaskScore(items, _score_estimate(tables[LOG_SMAPE.name][task]), None)
    exact, smape = tables[EXACT_MATCH.name][task], tables[LOG_SMAPE.name][task]
    return TaskScore(items, _score_estimate(exact), _score_estimate(smape))


def _score_estimate(estimate: Estimate) -> ScoreEstimate:
    assert estimate.value_and_bounds is not None
    return ScoreEstimate(*estimate.value_and_bounds)
