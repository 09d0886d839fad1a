"""What is to be trained: a TOML file of runs, in order of priority."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from bench.bittoken.training.recipe import TEXT, Recipe, load_recipe
from bench.dataset.store import Dataset, open_dataset
from bench.errors import BadInput
from experiments.toml_file import read_toml

COMPARISON = Path(__file__).with_name("comparison.toml")


class _Runs(Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[runs]]`: as many runs as `each` has combinations."""

    name: str
    recipe: str
    set: tuple[str, ...] = ()
    each: dict[str, tuple[str | int, ...]] = {}


class _Declaration(Struct, frozen=True, forbid_unknown_fields=True):
    dataset: str
    recipes: str
    runs: tuple[_Runs, ...]


class Declared(NamedTuple):
    """A run: its recipe whole, and as `numbench train` is told it."""

    name: str
    recipe: Recipe
    file: Path
    overrides: tuple[str, ...]


class Comparison(NamedTuple):
    """All runs in order of priority, and what their checkpoints are asked."""

    runs: tuple[Declared, ...]
    dataset: Dataset


def read_comparison(path: Path = COMPARISON) -> Comparison:
    """The runs that `path` declares. BadInput, with the run, for one that cannot be.

    The dataset must hold every task that is trained, with as many digits at most.
    """
    declaration = read_toml(path, _Declaration)
    dataset = open_dataset(declaration.dataset)
    found: dict[str, Declared] = {}
    for runs in declaration.runs:
        for run in _expanded(path, runs, Path(declaration.recipes)):
            if run.name in found:
                raise BadInput(f"{path}: two runs are named {run.name!r}")
            _check(path, run, dataset)
            found[run.name] = run
    return Comparison(tuple(found.values()), dataset)


def _expanded(path: Path, runs: _Runs, folder: Path) -> Iterator[Declared]:
    for values in product(*runs.each.values()):
        filled = dict(zip(runs.each, values, strict=True))
        try:
            name = _filled(runs.name, filled)
            file = folder / f"{_filled(runs.recipe, filled)}.toml"
            overrides = tuple(_filled(text, filled) for text in (f"name={name}", *runs.set))
        except KeyError as error:
            raise BadInput(f"{path}: {runs.name}: each has no {error.args[0]!r}") from error
        yield Declared(name, load_recipe(file, overrides), file, overrides)


def _filled(text: str, values: dict[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), text)


def _check(path: Path, run: Declared, dataset: Dataset) -> None:
    tasks, digits = run.recipe.data.tasks, run.recipe.data.digits
    lacking = [task for task in tasks if task == TEXT or task not in dataset.tasks]
    if lacking:
        raise BadInput(f"{path}: {run.name}: dataset {dataset.name} lacks {', '.join(lacking)}")
    asked = dataset.manifest.settings.get("max_digits")
    if asked != digits:
        raise BadInput(
            f"{path}: {run.name} is trained on at most {digits} digits, but dataset "
            f"{dataset.name} asks at most {asked}"
        )
