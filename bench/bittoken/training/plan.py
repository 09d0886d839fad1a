"""What a recipe would train, without training it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from rich.table import Table

from bench.bittoken.network import Network
from bench.bittoken.text.sources import GPT2_ENTRIES
from bench.bittoken.training.flops import Sizes
from bench.bittoken.training.recipe import TEXT, Recipe, described, shipped_recipes
from bench.bittoken.training.text import read_vocabulary
from bench.bittoken.training.wording import display_name, short
from bench.bittoken.vocabulary import Vocabulary

_FLOAT = 4
"""Bytes of a stored parameter: weights and optimiser states are in float32."""


class Plan(NamedTuple):
    """A recipe and what follows from it.

    vocabulary: tokens, at most so many where a text vocabulary is yet to be trained, and as
    GPT-2's leaves where its file is not there yet.
    checkpoint, state: bytes on disk, about.
    """

    recipe: Recipe
    vocabulary: int
    sizes: Sizes
    checkpoint: int
    state: int


def plan(recipe: Recipe) -> Plan:
    """BadInput where the recipe's text vocabulary is there but does not load."""
    vocabulary = len(Vocabulary(recipe.model.encoding)) + _text_entries(recipe)
    with torch.device("meta"):
        sizes = Sizes.of(Network(recipe.config(vocabulary)))
    # Now and best, Muon's one moment or Adam's two; matrices of the layers are nearly all of them.
    state = 2 * sizes.whole + sizes.layers + 2 * (sizes.heads + sizes.embedding)
    return Plan(recipe, vocabulary, sizes, _FLOAT * sizes.whole, _FLOAT * state)


def _text_entries(recipe: Recipe) -> int:
    named = recipe.data.text_vocabulary
    if TEXT not in recipe.data.tasks:
        return 0
    if named is None:
        return recipe.data.text_size
    return len(read_vocabulary(Path(named))) if Path(named).exists() else GPT2_ENTRIES


def plan_table(plan: Plan) -> Table:
    """A plan for people."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, said in _rows(plan):
        table.add_row(name, said)
    return table


def recipe_table() -> Table:
    """The recipes that come with the package, each with what it says of itself."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Recipe", no_wrap=True)
    table.add_column("What it trains", overflow="fold")
    for name in shipped_recipes():
        table.add_row(name, described(name))
    return table


def _rows(plan: Plan) -> list[tuple[str, str]]:
    recipe, training, model = plan.recipe, plan.recipe.training, plan.recipe.model
    data, steps = recipe.data, training.steps
    at_once = f"{training.batch_tokens:,} tokens a step"
    if training.micro_tokens:
        at_once += f", in passes of {training.micro_tokens:,}"
    spelled = Vocabulary(model.encoding).encoding is None
    numbers = (
        "spelled as text" if spelled else f"combined by {model.combination}, {model.head} head"
    )
    rhythm = f"every {training.validate_every:,} steps, saved every {training.save_every:,}"
    disk = f"checkpoint {_bytes(plan.checkpoint)}, state to go on from {_bytes(plan.state)}"
    return [
        ("recipe", recipe.name),
        ("numbers", f"{model.encoding}, {numbers}"),
        ("network", f"{model.layers} layers, {model.heads} heads, width {model.width}"),
        ("parameters", _parameters(plan)),
        ("tasks", ", ".join(display_name(task) for task in data.tasks)),
        ("text", _text(recipe)),
        ("curriculum", _curriculum(recipe)),
        ("digits", f"at most {data.digits} of an operand"),
        ("training", f"{training.tokens:,} tokens: {steps:,} steps, {at_once}"),
        ("validation", rhythm),
        ("on disk", disk),
    ]


def _parameters(plan: Plan) -> str:
    layers, heads, embedding = (short(size) for size in plan.sizes)
    return f"{plan.sizes.whole:,} (layers {layers}, heads {heads}, embedding {embedding})"


def _text(recipe: Recipe) -> str:
    data = recipe.data
    if data.text is None:
        return "none"
    there = data.text if Path(data.text).is_dir() else f"{data.text} (no such folder yet)"
    if data.text_vocabulary is not None:
        missing = not Path(data.text_vocabulary).exists()
        counted = " (no such file yet; counted as GPT-2's)" if missing else ""
        return f"{there}, vocabulary {data.text_vocabulary}{counted}"
    return f"{there}, with a vocabulary of at most {data.text_size:,} learned on it"


def _curriculum(recipe: Recipe) -> str:
    data = recipe.data
    names = [display_name(task) for task in data.tasks if task in data.curriculum]
    return f"{', '.join(names)}, by digits in base {recipe.base}" if names else "none"


def _bytes(count: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"
