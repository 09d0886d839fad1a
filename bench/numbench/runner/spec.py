"""What a run sends and to which model: the user's specification, and what it resolves to."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

import msgspec

from numbench._version import __version__
from numbench.dataset.store import Dataset, open_dataset
from numbench.errors import BadInput
from numbench.horizon.items import ItemSequences
from numbench.models import Api, Message, ModelDescription, Request, RequestSettings, describe_model
from numbench.models.base import merge_parameters
from numbench.records import PAPER, Item, ItemSample, RunInfo, parse_shard
from numbench.runner.few_shot import Examples, examples, examples_sha256, messages_before
from numbench.runner.measurement_spec import (
    MeasurementSpec,
    Sizes,
    check_measurement,
    example_questions,
    permitted_sizes,
    scaled_tasks,
)
from numbench.runner.model_limits import token_limits
from numbench.runner.prices import find_price
from numbench.runner.request_options import (
    check_headers,
    check_params,
    check_pinned_hosts,
    recorded_headers,
)
from numbench.tasks import TASKS
from numbench.transforms import NO_TRANSFORM, Variant, open_variant

_UNREAD_NOTATIONS = ("grouping", "decimal-comma")
"""Transformations whose numbers the models that take no prompts cannot read."""

MAX_SAMPLES = 1000
"""Samples per item; the votes of more could not be counted in float64."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class RunSpec:
    """A run as the user specifies it. Equal specs resume the same run folder.

    reasoning: may be None if the model has one level. dataset: a name or a folder.
    tasks: None for all of the dataset. limit: items per task, None for all.
    few_shot: number of worked examples before each question.
    max_tokens, seed: of each answer; None for the defaults of the model and the catalogue.
    samples: number of answers per item. temperature: None for 0, if the model accepts one.
    shard: `i/n` for part i of n of the items of each task; None for all of them.
    base_url: another server with the model's protocol. api_key_env: the environment variable with
    its key. allow_http: whether its URL may be plain HTTP beyond private networks.
    api: the format of OpenAI's protocol. stream: whether to stream answers, None for the default.
    background: whether the provider generates answers in the background.
    out: the run folder, None for `results/MODEL_LEVEL_DATASET`.
    structured: whether requests contain the JSON schema of the answer; None for the default.
    params: parameters to add to the body of requests, nested. headers: HTTP headers to add.
    providers, quantizations: the hosts of the model to use, on routes with several (OpenRouter).
    allow_altered_messages: whether the route may change the messages.
    measurement: how to measure horizons on scaled tasks; None for a run on the dataset.
    prompts: the prompt set, a name or a folder. transform: the transformation of the items, None or
    `none` for none.
    """

    model: str
    reasoning: str | None = None
    dataset: str | Path = "v1"
    tasks: Sequence[str] | None = None
    limit: int | None = None
    few_shot: int = 0
    max_tokens: int | None = None
    seed: int | None = None
    base_url: str | None = None
    api: Api = "chat"
    out: Path | None = None
    samples: int = 1
    temperature: float | None = None
    api_key_env: str | None = None
    allow_http: bool = False
    structured: bool | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    providers: Sequence[str] = ()
    quantizations: Sequence[str] = ()
    allow_altered_messages: bool = False
    stream: bool | None = None
    shard: str | None = None
    background: bool = False
    measurement: MeasurementSpec | None = None
    prompts: str | Path = PAPER
    transform: str | None = None

    def describe(self) -> ModelDescription:
        """Return the description of the model. Raises BadInput for an unknown model or level."""
        return describe_model(self.model, self.reasoning, self.base_url, self.api)


@dataclass(frozen=True)
class ResolvedRun:
    """A RunSpec with its dataset, model and folder looked up.

    settings: a template for the settings of the requests. examples, items: as they are asked. info:
    the content of `run.json`. variant: prompts and transformation. sizes: of a horizon measurement;
    its dataset has only examples of the questions.
    """

    spec: RunSpec
    description: ModelDescription
    dataset: Dataset
    tasks: tuple[str, ...]
    settings: RequestSettings
    examples: Examples
    folder: Path
    info: RunInfo
    variant: Variant
    sizes: Sizes = field(default_factory=dict)

    @cached_property
    def items_by_task(self) -> dict[str, list[Item]]:
        """The items of each task, in the dataset's order."""
        by_task = self.dataset.by_task
        return {
            task: [self.variant.ask(item) for item in self.info.select_items(by_task[task])]
            for task in self.tasks
        }

    @cached_property
    def requests_by_task(self) -> dict[str, list[ItemSample]]:
        """The requests of each task: the first sample of every item, then the second, and so on."""
        return {
            task: [
                ItemSample(item, sample) for sample in range(self.spec.samples) for item in items
            ]
            for task, items in self.items_by_task.items()
        }

    @property
    def has_new_token_limit(self) -> bool:
        """Whether the requests have another token limit than the run, to retry truncated ones."""
        return self.info.settings["max_tokens"] != self.settings.max_tokens

    def prompt_prefix(self, task: str) -> tuple[Message, ...]:
        """Return the messages before a question of `task`: system prompt and examples."""
        return messages_before(self.variant.prompts, task, self.examples.get(task, ()))

    def prefix_characters(self, task: str) -> int:
        """Return the length of the messages before a question of `task`."""
        return sum(len(message.content) for message in self.prompt_prefix(task))

    def request(self, requested: ItemSample, timeout: float) -> Request:
        """Return the request for one sample of an item; `timeout` in seconds.

        A seed differs between samples, because the same seed may give the same answer.
        """
        prefix, settings = self._request_templates[requested.task]
        seed = None if settings.seed is None else settings.seed + requested.sample
        return Request(
            (*prefix, Message("user", requested.item.prompt)),
            replace(settings, timeout=timeout, seed=seed),
        )

    @cached_property
    def _request_templates(self) -> dict[str, tuple[tuple[Message, ...], RequestSettings]]:
        return {
            task: (
                self.prompt_prefix(task),
                replace(self.settings, answer_kind=TASKS[task].answer_kind),
            )
            for task in self.tasks
        }


def resolve(spec: RunSpec, description: ModelDescription) -> ResolvedRun:
    """Look up what `spec` refers to, for the model with this `description`.

    Raises BadInput for wrong arguments.
    """
    for name, number in (
        ("--limit", spec.limit),
        ("--max-tokens", spec.max_tokens),
        ("--samples", spec.samples),
    ):
        if number is not None and number < 1:
            raise BadInput(f"{name} {number}: give 1 or more")
    if spec.samples > MAX_SAMPLES:
        raise BadInput(f"--samples {spec.samples}: give at most {MAX_SAMPLES:,}")
    _check_sampling(spec, description)
    settings = _settings(spec, description)
    sizes: Sizes = {}
    if spec.measurement is None:
        dataset = open_dataset(spec.dataset)
        tasks = select_tasks(dataset, spec.tasks)
    else:
        check_measurement(spec.measurement)
        tasks = scaled_tasks(spec.tasks)
        items = ItemSequences(spec.measurement.question_seed)
        limits = token_limits(description, settings)
        sizes = permitted_sizes(spec.measurement, tasks, items, limits)
        dataset = example_questions(sizes, items)
    variant = _variant(spec, description)
    tasks = variant.select_tasks(tasks, is_chosen=spec.tasks is not None)
    shown = {
        task: tuple(map(variant.ask, items))
        for task, items in examples(dataset, tasks, spec.few_shot).items()
    }
    folder = spec.out or Path("results") / folder_name(spec, description.level, dataset.name)
    info = _info(spec, description, dataset, tasks, settings, shown, folder, variant)
    if spec.measurement is not None:
        info = msgspec.structs.replace(info, horizon=spec.measurement.info(sizes))
    return ResolvedRun(
        spec, description, dataset, tasks, settings, shown, folder, info, variant, sizes
    )


def _variant(spec: RunSpec, description: ModelDescription) -> Variant:
    """Return prompts and transformation of a run. Raises BadInput if the model cannot have them."""
    variant = open_variant(spec.prompts, spec.transform)
    if description.takes_prompts:
        return variant
    if variant.prompts.name != PAPER:
        raise BadInput(f"{spec.model} takes no prompts: omit --prompts")
    if variant.transform is not None and variant.transform.name in _UNREAD_NOTATIONS:
        raise BadInput(
            f"{spec.model} reads no numbers with commas: omit --transform {variant.transform.name}"
        )
    return variant


def _settings(spec: RunSpec, description: ModelDescription) -> RequestSettings:
    """Return the settings of the requests. Raises BadInput for one that the model lacks."""
    options = {"--few-shot": spec.few_shot, "--max-tokens": spec.max_tokens, "--seed": spec.seed}
    given = [name for name, value in options.items() if value]
    if not description.takes_prompts and given:
        raise BadInput(f"{spec.model} takes no prompts: omit {', '.join(given)}")
    if spec.seed is not None and not description.takes_seed:
        api = "OpenAI's Responses API" if spec.api == "responses" else "its API"
        raise BadInput(f"{spec.model}: {api} has no parameter seed: omit --seed")
    settings = description.settings
    if spec.max_tokens is not None:
        settings = replace(settings, max_tokens=spec.max_tokens)
    if spec.seed is not None:
        settings = replace(settings, seed=spec.seed)
    if spec.temperature is not None:
        settings = replace(settings, temperature=spec.temperature)
    if spec.structured is not None:
        settings = replace(settings, structured=spec.structured)
    return replace(settings, request=_request(spec, description), params=dict(spec.params))


def _request(spec: RunSpec, description: ModelDescription) -> dict[str, object]:
    """Return the parameters of the reasoning level and of the hosts that the user chose.

    Raises BadInput for a choice, a parameter or a header that the model cannot have.
    """
    added = {
        "--param": bool(spec.params),
        "--header": bool(spec.headers),
        "--structured": spec.structured is not None,
    }
    given = [name for name, is_given in added.items() if is_given]
    if description.route is None and given:
        raise BadInput(f"{spec.model} runs in this process: omit {', '.join(given)}")
    if (spec.params or spec.headers) and not description.inspects_requests:
        raise BadInput(f"{spec.model}: its provider takes no --param and --header: omit them")
    check_headers(spec.headers)
    check_params(spec.params, description.level_request)
    pin = description.pin_hosts
    check_pinned_hosts(spec.model, spec.providers, spec.quantizations, pin is not None)
    request = description.settings.request
    if pin is None or not (spec.providers or spec.quantizations):
        return request
    return merge_parameters(request, pin(spec.providers, spec.quantizations))


def _check_sampling(spec: RunSpec, description: ModelDescription) -> None:
    """Raise BadInput for a temperature or repeated samples that the model cannot have.

    Samples at temperature 0 are refused unless the user gave that temperature, e.g. to measure
    how far a server is from deterministic.
    """
    temperature = spec.temperature
    options = {"--samples": spec.samples > 1, "--temperature": temperature is not None}
    given = " and ".join(name for name, is_given in options.items() if is_given)
    if given and description.is_deterministic:
        raise BadInput(f"{spec.model} gives the same answer every time: omit {given}")
    if temperature is not None:
        if not 0 <= temperature < math.inf:
            raise BadInput(f"--temperature {temperature:g}: give 0 or more")
        if description.settings.temperature is None:
            raise BadInput(f"{spec.model} accepts no temperature: omit --temperature")
    elif spec.samples > 1 and description.settings.temperature == 0:
        raise BadInput(
            f"--samples {spec.samples}: at temperature 0 the answers hardly differ; add "
            "--temperature T, for example 0.7 (or --temperature 0, if that is what you measure)"
        )


def _info(
    spec: RunSpec,
    description: ModelDescription,
    dataset: Dataset,
    tasks: tuple[str, ...],
    settings: RequestSettings,
    shown: Examples,
    folder: Path,
    variant: Variant,
) -> RunInfo:
    recorded = asdict(settings) | description.identity
    for name in ("answer_kind", "timeout"):
        # These belong to a single request, not to the run.
        del recorded[name]
    if not settings.params:
        del recorded["params"]
    if spec.headers:
        recorded["headers"] = recorded_headers(spec.headers)
    if spec.samples > 1:
        recorded["samples"] = spec.samples
    if spec.stream is not None:
        recorded["stream"] = spec.stream
    if spec.background:
        recorded["background"] = True
    if shown:
        recorded |= {"few_shot": spec.few_shot, "few_shot_sha256": examples_sha256(shown)}
    versions = {"numbench": __version__, "python": platform.python_version()}
    if description.sdk is not None:
        versions[description.sdk] = version(description.sdk)
    price = find_price(description.route, spec.base_url, spec.params) if description.route else None
    return RunInfo(
        model=spec.model,
        display=description.display,
        reasoning=description.level,
        dataset=dataset.ref(folder),
        prompt=variant.prompts.ref(tasks),
        tasks=tasks,
        limit=spec.limit,
        settings=recorded,
        versions=versions,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        shard=parse_shard(spec.shard),
        price=price.record if price else None,
        transform=variant.transform.name if variant.transform else None,
    )


def folder_name(spec: RunSpec, level: str, dataset: str) -> str:
    """Return the name of a run folder: `MODEL_LEVEL_DATASET`.

    Then follow other prompts than the paper's, a transformation, examples and a shard, as in
    `_prompts-steps_swap_5-shot_shard-2-of-8`.
    """
    safe_model = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.model).strip("-.")
    name = f"{safe_model}_{level}_{dataset}"
    if (prompts := Path(spec.prompts).name) != PAPER:
        name += f"_prompts-{prompts}"
    if spec.transform not in (None, NO_TRANSFORM):
        name += f"_{spec.transform}"
    if spec.few_shot:
        name += f"_{spec.few_shot}-shot"
    if shard := parse_shard(spec.shard):
        name += f"_shard-{shard.index}-of-{shard.count}"
    return name


def select_tasks(source: Dataset, tasks: Sequence[str] | None) -> tuple[str, ...]:
    """Return the tasks of a run, in the order of the registry.

    Raises BadInput for a task that is unknown or not in the dataset.
    """
    for task in tasks or ():
        if task not in TASKS:
            raise BadInput(f"unknown task {task!r}: use {', '.join(TASKS)}")
        if task not in source.tasks:
            raise BadInput(
                f"dataset {source.name} has no task {task!r}: it has {', '.join(source.tasks)}"
            )
    if tasks is not None and not tasks:
        raise BadInput(f"no task given: use {', '.join(source.tasks)}")
    return tuple(task for task in source.tasks if tasks is None or task in tasks)


def interleave(groups: Iterable[Sequence[_T]]) -> Iterator[_T]:
    """Yield one element of each group in turn, so that a partial run covers every task."""
    for group in zip_longest(*groups):
        yield from (element for element in group if element is not None)
