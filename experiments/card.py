"""The card of a checkpoint that comes with the package, worked out from the files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.bittoken.checkpoint import WEIGHTS
from bench.bittoken.training import log
from bench.bittoken.training.measuring import chance
from bench.bittoken.training.recipe import Recipe
from bench.dataset.settings import Settings
from bench.errors import BadInput
from bench.jsonl import read_json
from bench.report.escape import markdown
from bench.tasks import TASKS
from experiments.cells import threads
from experiments.kept import RECIPE, Bounded, Scores
from experiments.thirds import Third

CARD, DIFFICULTY, NOTES = "README.md", "difficulty.json", "notes.md"
TEMPLATE = Path(__file__).with_name("card.md")

KNOWN = ("v1", "short")
NEW = (
    Settings(name="new", size=2000, seed=20261121),
    Settings(name="new-short", size=2000, seed=20261121, max_digits=4),
)
"""Items of the test split that are in no repository: a seed makes them wherever they are needed."""

METRICS = {"exact_match": "exact match", "log_smape": "log-sMAPE"}


def scores_file(dataset: str) -> str:
    """Where the scores on a dataset lie."""
    return f"scores-{dataset}.json"


def card(folder: Path) -> str:
    """The card of the checkpoint in `folder`.

    `notes.md`, what was written by hand on where it fails, stands in its place. BadInput where the
    scores are missing or of another training than the recipe and the log.
    """
    names = [path.name for path in folder.glob(scores_file("*"))]
    scores = {run.dataset.name: run for run in (read_json(folder / n, Scores) for n in names)}
    difficulty = folder / DIFFICULTY
    if not difficulty.is_file():
        raise BadInput(f"{difficulty} is missing: ship the training anew")
    parts = read_json(difficulty, dict[str, dict[str, list[Third]]])
    if parts.keys() != scores.keys():
        raise BadInput(f"{folder}: {DIFFICULTY} and the scores are of other datasets; ship it anew")
    # In the order in which they were asked.
    asked = [scores[name] for name in parts]
    recipe, last = read_json(folder / RECIPE, Recipe), log.measures(log.read(folder))[-1]
    trained = (recipe, last["tokens"], last["seconds"], asked[0].model_sha256)
    if any((run.recipe, run.tokens, run.seconds, run.model_sha256) != trained for run in asked):
        raise BadInput(
            f"{folder}: its scores are of another training than its recipe or log; ship it anew"
        )
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in {
        "NAME": folder.name,
        "FACTS": _facts(folder, asked[0]),
        "DIGITS": f"{asked[0].recipe.data.digits}",
        "MAKE": "\n".join(map(_made_by, NEW)),
        "NEW": NEW[0].name,
        "NEW_NAMES": " and ".join(f"`{settings.name}`" for settings in NEW),
        "SCORES": _scores(asked),
        "THIRDS": "\n\n".join(_thirds(run, parts[run.dataset.name]) for run in asked[-len(NEW) :]),
        "NOTES": (folder / NOTES).read_text(encoding="utf-8").strip(),
        "MINUTES": f"{asked[0].seconds / 60:.0f}",
    }.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _made_by(settings: Settings) -> str:
    digits = "" if settings.max_digits == 15 else f" --max-digits {settings.max_digits}"
    made = f"--name {settings.name} --size {settings.size} --seed {settings.seed}{digits}"
    return f"    numbench generate {made} --out /tmp/{settings.name}"


def _facts(folder: Path, run: Scores) -> str:
    recipe, size = run.recipe, (folder / WEIGHTS).stat().st_size
    begun = [line for line in log.read(folder) if "event" in line]
    shape = recipe.model
    rows = {
        "numbers": f"{shape.encoding}, combined by {shape.combination}, {shape.head} head",
        "network": f"{shape.layers} layers, {shape.heads} heads, width {shape.width}: "
        f"{run.parameters:,} parameters",
        "weights": f"bfloat16, {size / 1e6:.1f} MB",
        "trained on": f"{', '.join(TASKS[task].display for task in recipe.data.tasks)}: questions "
        f"made on the fly with exact answers, up to {recipe.data.digits} digits an operand, "
        "easy ones first",
        "not trained on": ", ".join(
            TASKS[task].display for task in TASKS if task not in recipe.data.tasks
        )
        + ", text",
        "tokens": f"{run.tokens:,}, {recipe.training.batch_tokens:,} a step",
        "time": f"{run.seconds / 60:.0f} minutes",
        "hardware": f"{markdown(run.device)}; {threads(run.threads)}"
        + (f"; in {len(begun)} sittings" if len(begun) > 1 else ""),
        "checkpoint": f"step {run.best_step:,} of {recipe.training.steps:,}, the best by "
        "validation",
        "made with": f"numbench {run.version}, torch {markdown(run.torch)}",
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "| :-- | :-- |", *lines])


def _scores(asked: Sequence[Scores]) -> str:
    heads = [f"`{_named(run)}`<br>{run.tasks['minmax'].items:,} a task" for run in asked]
    lines = [
        f"| Task | Metric | Chance | {' | '.join(heads)} |",
        f"| :-- | :-- | --: |{' --: |' * len(heads)}",
    ]
    trained = asked[0].recipe.data.tasks
    for task in TASKS:
        name = TASKS[task].display if task in trained else f"({TASKS[task].display})"
        own = [run.tasks[task] for run in asked]
        if TASKS[task].metric == "log_smape":
            smapes = [score.log_smape for score in own if score.log_smape]
            lines.append(_line(name, "log-sMAPE", "", smapes))
            if task not in trained:
                continue
        guess = f"{100 * chance(task):.1f}" if chance(task) else ""
        lines.append(_line(name, "exact match", guess, [score.exact_match for score in own]))
    return "\n".join(lines)


def _thirds(run: Scores, parts: dict[str, list[Third]]) -> str:
    lines = [
        f"| `{_named(run)}` | Metric | Difficulty δ | Items | Chance | Score |",
        "| :-- | :-- | --: | --: | --: | --: |",
    ]
    for task, found in parts.items():
        metric = METRICS[TASKS[task].metric]
        for part in found:
            guess = "" if part.chance is None else f"{part.chance:.1f}"
            span = f"{part.easiest:,}–{part.hardest:,} | {part.items:,}"
            lines.append(_line(TASKS[task].display, f"{metric} | {span}", guess, [part.score]))
    return "\n".join(lines)


def _line(name: str, metric: str, guess: str, scores: Sequence[Bounded]) -> str:
    return f"| {name} | {metric} | {guess} | {' | '.join(map(_bounded, scores))} |"


def _named(run: Scores) -> str:
    return f"{run.dataset.name}@{run.dataset.sha256[:6]}"


def _bounded(score: Bounded) -> str:
    return f"{score.value:.1f} ({score.low:.1f}–{score.high:.1f})"
