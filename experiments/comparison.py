"""The declared runs: a TOML file, in order of priority."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from bittoken.training.recipe import TEXT, Recipe, load_recipe
from numbench.dataset.store import Dataset, open_dataset
from numbench.errors import BadInput
from numbench.jsonl import read_toml

COMPARISON = Path(__file__).with_name("comparison.toml")


class _Runs(Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[runs]]` table: one run per combination of the values in `each`."""

    name: str
    recipe: str
    set: tuple[str, ...] = ()
    each: dict[str, tuple[str | int, ...]] = {}


class _Declaration(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    recipes: str
    runs: tuple[_Runs, ...]
    dataset: str | None = None
    results: str = "results/trained"


class DeclaredRun(NamedTuple):
    """A run: its complete recipe, and the arguments of `bittoken train` that give it."""

    name: str
    recipe: Recipe
    recipe_file: Path
    overrides: tuple[str, ...]


class Comparison(NamedTuple):
    """All runs in order of priority, and the dataset on which their checkpoints are evaluated.

    Without a dataset, the results are the metrics logs with the scores of all validations.
    results: the folder of stored runs.
    """

    runs: tuple[DeclaredRun, ...]
    dataset: Dataset | None
    results: Path


def read_comparison(path: Path = COMPARISON) -> Comparison:
    """Return the runs that `path` declares. Raises BadInput, naming the run, if one is invalid.

    The dataset must contain every trained task, with the same maximum number of digits.
    """
    declaration = read_toml(path, _Declaration)
    dataset = None if declaration.dataset is None else open_dataset(declaration.dataset)
    by_name: dict[str, DeclaredRun] = {}
    for runs in declaration.runs:
        for run in _expand(path, runs, Path(declaration.recipes)):
            if run.name in by_name:
                raise BadInput(f"{path}: two runs are named {run.name!r}")
            if dataset is not None:
                _check(path, run, dataset)
            by_name[run.name] = run
    return Comparison(tuple(by_name.values()), dataset, Path(declaration.results))


def _expand(path: Path, runs: _Runs, folder: Path) -> Iterator[DeclaredRun]:
    for values in product(*runs.each.values()):
        assignment = dict(zip(runs.each, values, strict=True))
        try:
            name = _substitute(runs.name, assignment)
            file = folder / f"{_substitute(runs.recipe, assignment)}.toml"
            overrides = tuple(_substitute(text, assignment) for text in (f"name={name}", *runs.set))
        except KeyError as error:
            raise BadInput(f"{path}: {runs.name}: 'each' has no {error.args[0]!r}") from error
        yield DeclaredRun(name, load_recipe(file, overrides), file, overrides)


def _substitute(text: str, values: dict[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), text)


def _check(path: Path, run: DeclaredRun, dataset: Dataset) -> None:
    tasks, digits = run.recipe.data.tasks, run.recipe.data.digits
    missing = [task for task in tasks if task == TEXT or task not in dataset.tasks]
    if missing:
        raise BadInput(f"{path}: {run.name}: dataset {dataset.name} lacks {', '.join(missing)}")
    dataset_digits = dataset.manifest.settings.get("max_digits")
    if dataset_digits != digits:
        raise BadInput(
            f"{path}: {run.name} is trained on at most {digits} digits, but dataset "
            f"{dataset.name} has at most {dataset_digits}"
        )
