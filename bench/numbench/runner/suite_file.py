"""Suite files: runs as products of models, levels, datasets, prompts and so on, in TOML."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import msgspec
from msgspec import Struct

from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.models.catalogue import find_model_provider, find_named_model, levels_of_model
from numbench.runner.spec import RunSpec, folder_name
from numbench.tasks.prompts import expand_prompt_names

ALL_LEVELS = "all"
"""The word for every level that a model has."""

_NAME = re.compile(r"[\w.-]+")


class _Matrix(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[matrix]]`: a run for each combination. What is missing is taken from the command."""

    models: tuple[str, ...]
    levels: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | None = None
    few_shot: tuple[int, ...] | None = None
    samples: tuple[int, ...] | None = None
    prompts: tuple[str, ...] | None = None
    transforms: tuple[str, ...] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    limit: int | None = None
    tasks: tuple[str, ...] | None = None
    name: str = ""


class _SuiteFile(Struct, frozen=True, forbid_unknown_fields=True):
    matrix: tuple[_Matrix, ...]


def suite_specs(path: Path, common: RunSpec) -> tuple[RunSpec, ...]:
    """Return the runs of a suite file, with the arguments of `common` for what it does not set.

    Their folders are in `common.out`, by default `results`; `name` is added to those of a matrix.
    Raises BadInput, naming the file, if it is malformed or two runs would share a folder.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        suite = msgspec.convert(content, _SuiteFile)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; give --suite paper or a TOML file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path}: {error}") from error
    specs: dict[Path, RunSpec] = {}
    for number, matrix in enumerate(suite.matrix):
        try:
            _check(matrix)
            for spec in _expand(matrix, common):
                assert spec.out is not None
                if spec.out in specs:
                    raise BadInput(
                        f"two runs have the folder {spec.out}: give one matrix another name"
                    )
                specs[spec.out] = spec
        except BadInput as error:
            raise BadInput(f"{path}, matrix[{number}]: {error}") from error
    if not specs:
        raise BadInput(f"{path}: no run; add [[matrix]] with models")
    return tuple(specs.values())


def _check(matrix: _Matrix) -> None:
    """Raise BadInput for an empty list, a repeated value, or a name that no folder can end in."""
    for field in (
        "models",
        "levels",
        "datasets",
        "few_shot",
        "samples",
        "prompts",
        "transforms",
        "tasks",
    ):
        values = getattr(matrix, field)
        if values == ():
            raise BadInput(f"{field} is empty: add a value, or omit the field")
        for value, count in Counter(values).items():
            if count > 1:
                raise BadInput(f"{field} has {value!r} {count} times: give it once")
    if matrix.name and not _NAME.fullmatch(matrix.name):
        raise BadInput(f"name {matrix.name!r}: use letters, digits, '.', '_' and '-'")


def _expand(matrix: _Matrix, common: RunSpec) -> Iterator[RunSpec]:
    fixed = {
        name: value
        for name in ("temperature", "max_tokens", "limit", "tasks")
        if (value := getattr(matrix, name)) is not None
    }
    combinations = product(
        matrix.models,
        matrix.datasets or (common.dataset,),
        matrix.few_shot or (common.few_shot,),
        matrix.samples or (common.samples,),
        expand_prompt_names(matrix.prompts) if matrix.prompts else (common.prompts,),
        matrix.transforms or (common.transform,),
    )
    for model, dataset, few_shot, samples, prompts, transform in combinations:
        for level in _levels(model, matrix.levels):
            shown_level = level or "default"
            spec = replace(
                common,
                model=model,
                reasoning=level,
                few_shot=few_shot,
                prompts=prompts,
                transform=transform,
            )
            folder = folder_name(spec, shown_level, open_dataset(dataset).name)
            folder += f"_{samples}-samples" if len(matrix.samples or ()) > 1 else ""
            folder += f"_{matrix.name}" if matrix.name else ""
            yield replace(
                spec,
                dataset=dataset,
                samples=samples,
                out=(common.out or Path("results")) / folder,
                **fixed,
            )


def _levels(model: str, levels: tuple[str, ...] | None) -> tuple[str | None, ...]:
    """Return the levels at which to run a model; None for the default of a route."""
    provider = find_model_provider(model)
    if levels is None and find_named_model(model) is None:
        return (next(iter(provider.levels)) if provider.in_process and provider.levels else None,)
    available = levels_of_model(model)
    if levels is None and len(available) > 1:
        raise BadInput(f"{model} has several reasoning levels: give levels, or levels = ['all']")
    if levels is None or levels == (ALL_LEVELS,):
        return available or (None,)
    if ALL_LEVELS in levels and ALL_LEVELS not in available:
        raise BadInput("levels: give 'all' alone, or the names of levels")
    return levels
