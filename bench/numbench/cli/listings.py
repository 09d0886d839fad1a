"""The commands that list what their values may be: models, datasets, tasks and prompts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from numbench.cli.json_output import set_result
from numbench.cli.options import console, record_table
from numbench.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

_LEVELS_WIDTH = 24
_MAX_ROUTES = 40
"""Routes of the model map in one answer."""


class ListedDataset(NamedTuple):
    """A dataset of the list, with the numbers of its questions and tasks."""

    dataset: str
    split: str
    questions: int
    tasks: int


class ListedTask(NamedTuple):
    """A task of the list.

    group: that of `--tasks`, or `plugin`. unit: what the sizes of a scaled task count.
    """

    task: str
    group: str
    metric: str
    answer: str
    unit: str


class ListedPrompts(NamedTuple):
    """A prompt set of the list. tasks: how many it has prompts for."""

    prompts: str
    tasks: int
    description: str


def datasets() -> None:
    """List the datasets: the released ones, and those in ./datasets.

    \b
    Examples:
      numbench datasets
      numbench run --model NAME --dataset DATASET

    Writes no files. numbench generate makes others.
    """
    from numbench.dataset.store import dataset_names, open_dataset

    listed = []
    for name in dataset_names():
        manifest = open_dataset(name).manifest
        questions = sum(file.items for file in manifest.files)
        of_tasks = {file.task for file in manifest.files}
        listed.append(ListedDataset(name, manifest.split, questions, len(of_tasks)))
    console().print(record_table(set_result(listed)))


def tasks() -> None:
    """List the tasks, those of plugins included.

    \b
    Examples:
      numbench tasks
      numbench run --model NAME --tasks TASK,TASK

    Writes no files. The unit is what the sizes of a task count.
    """
    from numbench.tasks import TASK_GROUPS, TASKS

    group_of = {name: group for group, members in TASK_GROUPS.items() for name in members}
    listed = [
        ListedTask(
            name, group_of.get(name, "plugin"), task.metric, task.answer_kind,
            task.sizes.unit if task.sizes else "",
        )
        for name, task in TASKS.items()
    ]  # fmt: skip
    console().print(record_table(set_result(listed)))


def prompts() -> None:
    """List the prompt sets.

    \b
    Examples:
      numbench prompts
      numbench run --model NAME --prompts SET,SET

    A folder with questions.toml is a prompt set too. Writes no files.
    """
    from numbench.tasks.prompts import bundled_sets, load_prompt_set

    listed = []
    for each in map(load_prompt_set, bundled_sets()):
        # The file of the paper's set never changes, and has no description.
        description = each.options.description or "The prompts of the paper."
        listed.append(ListedPrompts(each.name, len(each.tasks), description))
    console().print(record_table(set_result(listed)))


def models(
    pattern: Annotated[
        str,
        typer.Argument(
            show_default=False, help="Part of a name, or a pattern such as 'openai/gpt-6*'."
        ),
    ] = "",
) -> None:
    """List the models: reasoning levels, prices, API key status.

    \b
    Examples:
      numbench models
      numbench models gpt-6            named models and routes containing gpt-6
      numbench models 'gemini/*flash*'
      numbench run --model NAME --reasoning LEVEL --limit 5

    With a pattern, also lists the unnamed models in litellm's bundled model map, by route. --model
    accepts any name or route. Writes no files. Needs no network.
    """
    # Routes stay whole on a narrow terminal, to be copied.
    console(width=200).print(_models_table(pattern))


class ListedModel(NamedTuple):
    """A model of the list.

    url: of the provider's API, empty in this process. levels: its reasoning levels, those that the
    provider may refuse with "?". input_price, output_price: US dollars per million tokens, None if
    unknown; price_varies: of other providers.
    """

    name: str
    provider: str
    url: str
    levels: tuple[str, ...]
    input_price: float | None
    output_price: float | None
    price_varies: bool
    retirement: str


def _models_table(pattern: str) -> RenderableType:
    """Return the named models, and with a pattern the routes of the model map, that match it.

    Raises BadInput if there are none.
    """
    from rich.console import Group
    from rich.text import Text

    from numbench.core.secrets import key_from_environment, load_env_file
    from numbench.core.texts import text_template
    from numbench.models.catalogue import (
        describe_hosted,
        find_model_provider,
        levels_of_model,
        named_models,
        unconfirmed_levels,
    )
    from numbench.models.facts import USER_CATALOGUE, HostedProvider
    from numbench.models.prices import find_price, load_model_map
    from numbench.models.providers import all_providers, find_provider

    load_env_file()
    source = load_model_map().source
    names = [name for name in named_models() if _matches(name, pattern)]
    # By its provider's own route, or else by the one through litellm.
    routes = sorted(
        (find_provider(name.partition("/")[0]) is None, name) for name in load_model_map().models
    )
    known = [f"litellm/{name}" if is_foreign else name for is_foreign, name in routes]
    known += [route for plugin in all_providers() for route in plugin.routes]
    matching = [route for route in known if pattern and _matches(route, pattern)]
    if not (names or matching):
        raise BadInput(f"no model matches {pattern!r}: try a shorter part of its name")
    keys, listed = {}, []
    for name in (*names, *matching[:_MAX_ROUTES]):
        provider = find_model_provider(name)
        price = find_price(named_models()[name].route if name in names else name)
        levels = levels_of_model(name)
        described = describe_hosted(name, levels[0] if levels else None)
        unconfirmed = unconfirmed_levels(str(described.route), described.known)
        shown = tuple(f"{level}?" if level in unconfirmed else level for level in levels)
        dollars = (price.input, price.output, price.varies) if price else (None, None, False)
        url = provider.facts.url if isinstance(provider.facts, HostedProvider) else ""
        about = url, shown, *dollars, described.known.retirement
        listed.append(ListedModel(name, provider.name, *about))
        for variable in provider.key_variables[:1]:
            key = key_from_environment(provider.key_variables)
            keys[key.variable if key else variable] = "set" if key else "not set"
    columns = {
        "$ in": lambda each: _price(each.input_price, each.price_varies),
        "$ out": lambda each: _price(each.output_price, each.price_varies),
        "Provider": lambda each: each.provider,
        "Levels": lambda each: ", ".join(each.levels),
        "Model": lambda each: each.name,
    }
    table = record_table(set_result(listed), columns)
    table.columns[3].max_width = _LEVELS_WIDTH
    template = text_template(Path(__file__).with_name("models.txt.j2"), trims=False)
    notes = template.render(
        rest=len(matching) - _MAX_ROUTES, listed=listed, source=source, catalogue=USER_CATALOGUE,
        keys=keys, providers=all_providers(),
    )  # fmt: skip
    return Group(table, Text(f"\n{notes.rstrip()}"))


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.lower(), f"*{pattern.lower()}*")


def _price(dollars: float | None, varies: bool) -> str:
    return "?" if dollars is None else f"{'≈' if varies else ''}{dollars:.3g}"
