"""What is kept of a run: its recipe, its metrics log, and the scores of its best checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench import __version__
from bench.bittoken.training import log
from bench.bittoken.training.recipe import Recipe
from bench.errors import NumbenchError
from bench.jsonl import read_json, write_atomically, write_json
from bench.report.layout import EXACT_MATCH, LOG_SMAPE, Estimate
from bench.report.measured import measure
from bench.scoring import ScoredRun, score_run
from bench.tasks import TASKS

RESULTS = Path("results/trained")
SCORES, RECIPE = "scores.json", "recipe.json"
CHECKPOINT = "checkpoint"


class Bounded(Struct, frozen=True):
    """A mean in percent with its 95 % interval over items."""

    value: float
    low: float
    high: float


class TaskScore(Struct, frozen=True):
    """`log_smape` is None for the comparison tasks, which are scored by exact match alone."""

    items: int
    exact_match: Bounded
    log_smape: Bounded | None

    @property
    def headline(self) -> Bounded:
        return self.log_smape or self.exact_match


class Asked(Struct, frozen=True):
    """A dataset or a set of prompts."""

    name: str
    sha256: str


class Scores(Struct, frozen=True, kw_only=True):
    """`scores.json`. seconds: of the training, over all sittings; best_step: of the checkpoint.

    dataset, prompt, protocol, model_sha256: what was asked, in which wording, how it was judged,
    and the fingerprint of the checkpoint that answered. tokens_a_question: in the validations of
    the training, where every task has the same share of tokens.
    """

    run: str
    tasks: dict[str, TaskScore]
    dataset: Asked
    prompt: Asked
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
        return self.recipe.training.seed


def read_scores(folder: Path) -> Scores | None:
    """The scores of the run that is kept in `folder`, None where it is not done."""
    path = folder / SCORES
    return read_json(path, Scores) if path.is_file() else None


def keep(scratch: Path, answers: Path, recipe: Recipe, folder: Path) -> Scores:
    """Score the `answers` of the training that ended in `scratch`; keep it in `folder`.

    Its scores come last, so that what has scores is whole.

    NumbenchError where some item was not answered.
    """
    scores = scored(scratch, score_run(answers), recipe)
    (folder / SCORES).unlink(missing_ok=True)
    write_json(folder / RECIPE, recipe)
    write_atomically(folder / log.FILE, (scratch / log.FILE).read_bytes())
    write_json(folder / SCORES, scores)
    return scores


def scored(training: Path, run: ScoredRun, recipe: Recipe) -> Scores:
    """The scores of a run of the checkpoint of the `training` in this folder.

    NumbenchError where some item was not answered.
    """
    (measured,) = measure([run])
    for task, cell in measured.cells.items():
        if cell.counted != cell.n:
            raise NumbenchError(
                f"{run.path}: {cell.n - cell.counted} of {cell.n} items of {task} were "
                "not answered; remove this folder to ask again"
            )
    lines = log.read(training)
    about = next(line for line in reversed(lines) if "event" in line)
    validations = log.measures(lines)
    last = validations[-1]
    questions = sum(found["items"] for line in validations for found in line["tasks"].values())
    trained = read_json(training / CHECKPOINT / "config.json", dict[str, Any])["training"]
    tables = measured.entry.tables
    return Scores(
        run=recipe.name,
        tasks={task: _task_score(task, cell.n, tables) for task, cell in measured.cells.items()},
        dataset=Asked(run.dataset.name, run.dataset.manifest.sha256),
        prompt=Asked(run.info.prompt.name, run.info.prompt.sha256),
        protocol=run.protocol,
        model_sha256=str(run.info.settings["model_sha256"]),
        parameters=about["parameters"],
        tokens=last["tokens"],
        seconds=last["seconds"],
        tokens_a_question=round(
            recipe.training.validation_tokens * len(validations) / questions, 1
        ),
        best_step=trained["step"],
        device=about["device"],
        threads=about["threads"],
        torch=about["torch"],
        version=__version__,
        recipe=recipe,
    )


def _task_score(task: str, items: int, tables: dict[str, dict[str, Estimate]]) -> TaskScore:
    if TASKS[task].metric != "log_smape":
        return TaskScore(items, _bounded(tables[LOG_SMAPE.name][task]), None)
    exact, smape = tables[EXACT_MATCH.name][task], tables[LOG_SMAPE.name][task]
    return TaskScore(items, _bounded(exact), _bounded(smape))


def _bounded(estimate: Estimate) -> Bounded:
    assert estimate.bounded is not None
    return Bounded(*estimate.bounded)


def differing(old: Any, new: Any, name: str = "") -> list[str]:
    """The fields in which two records differ, `model.width` for one within another."""
    old, new = msgspec.to_builtins(old), msgspec.to_builtins(new)
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(set(old) | set(new))
        parts = [differing(old.get(k), new.get(k), f"{name}.{k}" if name else k) for k in keys]
        return [field for part in parts for field in part]
    return [] if old == new else [name]
