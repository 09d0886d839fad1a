"""What a specification of a run refers to: model, dataset, questions, requests, folder."""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from numbench._version import __version__
from numbench.dataset.store import Dataset, open_dataset
from numbench.errors import BadInput
from numbench.horizon import DESIGN_VERSION, Limits
from numbench.horizon.items import (
    DATASET_NAME,
    GENERATOR_VERSION,
    AskedItems,
    ItemAddress,
    ItemSequences,
)
from numbench.horizon.sizes import answer_tokens, prompt_tokens, task_sizes
from numbench.models import (
    Message,
    Model,
    ModelDescription,
    Request,
    RequestSettings,
    Server,
    check_key,
    describe_model,
    open_model,
)
from numbench.models.facts import today
from numbench.models.prices import Price, find_price, with_cost
from numbench.records import (
    Completion,
    HorizonInfo,
    Item,
    ItemSample,
    RecordedRequest,
    RunInfo,
    parse_shard,
)
from numbench.runner.few_shot import Examples, examples, examples_sha256, messages_before
from numbench.runner.options import option_name, options_of
from numbench.runner.request_options import check_params, recorded_headers
from numbench.runner.spec import SMALLEST_MAX_SIZE, HorizonSpec, RunSpec
from numbench.secrets import mask_json
from numbench.served_models import is_same_model
from numbench.tasks import SCALED_TASKS, TASKS, check_task_name
from numbench.tasks.calculator import MAX_CALLS, Calculator, parse_calculator
from numbench.tasks.prompts import QUESTIONS
from numbench.transforms import NO_TRANSFORM, Variant, open_variant

if TYPE_CHECKING:
    from numbench.horizon.measurement import TaskMeasurement
    from numbench.models.batch_client import BatchService

_UNREAD_NOTATIONS = ("grouping", "decimal-comma")
"""Transformations whose numbers the models that take no prompts cannot read."""

_PREVIEWED_SIZE = 4
"""The size of the question of a measurement whose request is shown and recorded."""

_T = TypeVar("_T")
_CompletionT = TypeVar("_CompletionT", bound=Completion)


@dataclass(frozen=True)
class PreparedRun:
    """A RunSpec with its dataset, model and folder looked up; nothing is sent or written.

    settings: a template for the settings of the requests. examples, items: as they are asked. info:
    the content of `run.json`. variant: prompts and transformation. price: that of a request, with
    `discount` in a batch job; None if it is unknown or the model runs in this process. sizes: those
    that a horizon measurement may ask, by task; its dataset has only examples of the questions.
    requests: the first one of each task, as far as they are known. model, service: what answers
    them, the batch API with `--batch`; None if it is opened only for the run.
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
    price: Price | None
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    requests: Mapping[str, RecordedRequest] = field(default_factory=dict)
    model: Model | None = None
    service: BatchService | None = None
    _prices: dict[object, Price | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def discount(self) -> float:
        """The share of the price that the requests of the run save, in batch jobs."""
        return self.description.provider.batch_discount if self.spec.batch else 0.0

    def expected_cost(self, input_tokens: float, generated_tokens: float) -> float | None:
        """Return the US dollars for some tokens, None if the price is unknown."""
        if self.price is None:
            return None
        full = input_tokens * self.price.input + generated_tokens * self.price.output
        return full / 1e6 * (1 - self.discount)

    def with_cost(self, completion: _CompletionT, is_batch: bool = False) -> _CompletionT:
        """Return a completion with its cost, as far as it is known: that of who answered."""
        known, served = self.description, completion.served_model
        key = served, today()
        if key not in self._prices:
            self._prices[key] = _price(self.spec, known, served)
        discount = known.provider.batch_discount if is_batch else 0.0
        surcharges = known.known.surcharges or {}
        return with_cost(completion, self._prices[key], discount, surcharges)

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
    def title(self) -> str:
        """What displays call the run."""
        level, variant = self.description.level, self.info.variant_label
        parts = (self.spec.model, f"reasoning {level}", self.dataset.name, variant)
        return " · ".join(filter(None, parts))

    @property
    def new_token_limit(self) -> int | None:
        """The token limit of truncated answers that are retried, None if it is that of the run."""
        limit = self.settings.max_tokens
        return None if self.info.settings["max_tokens"] == limit else limit

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
            replace(settings, timeout=timeout, seed=seed, turns=requested.turns),
        )

    @cached_property
    def _calculator(self) -> Calculator | None:
        return parse_calculator(self.spec.tools) if self.spec.tools else None

    def with_results(self, requested: ItemSample, completion: Completion) -> Completion:
        """Return a completion with the results of its calls, if the conversation continues.

        The conversation ends at a reply without calls, with more than `MAX_CALLS`, or cut off, and
        at the last turn that the run allows.
        """
        calls, is_last = completion.calls, len(requested.turns) + 1 >= self.spec.max_turns
        is_cut_off = completion.error or completion.finish_reason not in ("stop", "other")
        if self._calculator is None or is_last or is_cut_off or len(calls) > MAX_CALLS:
            return completion
        earlier = sum(len(turn.calls) for turn in requested.turns)
        answered = (
            self._calculator.answer(call, requested.item.id, number)
            for number, call in enumerate(calls, earlier)
        )
        return structs.replace(completion, calls=tuple(answered))

    @cached_property
    def _request_templates(self) -> dict[str, tuple[tuple[Message, ...], RequestSettings]]:
        return {
            task: (
                self.prompt_prefix(task),
                replace(self.settings, answer_kind=TASKS[task].answer_kind),
            )
            for task in self.tasks
        }

    def open_client(self) -> Model | BatchService:
        """Return what answers the requests. Raises BadInput if its key is missing."""
        spec, server = self.spec, server_of(self.spec)
        check_key(spec.model, self.description, server)
        # The requests of some models cannot be seen before they are sent, nor are they opened.
        return self.service or self.model or open_model(spec.model, spec.reasoning, server).model

    def open_measurements(self) -> dict[str, TaskMeasurement]:
        """Return the measurement of each task, before any answer."""
        # It imports NumPy, which runs on datasets do not need.
        from numbench.horizon.measurement import TaskMeasurement

        assert isinstance(self.spec, HorizonSpec) and isinstance(self.dataset, AskedItems)
        items, limits = self.dataset.items, Limits(self.spec.precision, self.spec.max_items)
        return {
            task: TaskMeasurement(TASKS[task], sizes, items, limits, self.prefix_characters(task))
            for task, sizes in self.sizes.items()
        }


def server_of(spec: RunSpec) -> Server:
    """Return how to reach the model of a run."""
    return Server(spec.base_url, spec.api, spec.api_key_env, spec.headers, spec.stream)


def describe(spec: RunSpec) -> ModelDescription:
    """Return the description of the model. Raises BadInput for an unknown model or level."""
    return describe_model(spec.model, spec.reasoning, server_of(spec))


def resolve(spec: RunSpec, description: ModelDescription) -> PreparedRun:
    """Look up what `spec` refers to, for the model with this `description`.

    Raises BadInput for wrong values.
    """
    _check_options(spec, description)
    changes = {
        each.name: value
        for each in options_of(RunSpec)
        if each.option.is_setting and (value := getattr(spec, each.name)) is not None
    }
    if spec.tools and spec.structured is None:
        # On many servers a schema of the answer excludes calls.
        changes["structured"] = False
    settings = replace(description.settings, **changes)
    sizes: Mapping[str, tuple[int, ...]] = {}
    if isinstance(spec, HorizonSpec):
        scaled = [name for name, task in TASKS.items() if task.sizes]
        tasks = _chosen(spec.tasks, SCALED_TASKS, scaled, "has no sizes")
        items = ItemSequences(spec.question_seed)
        sizes = _permitted_sizes(spec, tasks, items, description, settings)
        dataset: Dataset = _example_questions(sizes, items)
    else:
        dataset = open_dataset(spec.dataset)
        tasks = select_tasks(dataset, spec.tasks)
    variant = open_variant(spec.prompt_set, spec.transform)
    if spec.tools and not variant.prompts.options.tools:
        raise BadInput(
            f"--prompts {variant.prompts.name}: these prompts forbid tools, or lack tools = true "
            f"in {variant.prompts.folder / QUESTIONS}; omit --prompts or --tools"
        )
    tasks = variant.select_tasks(tasks, is_chosen=spec.tasks is not None)
    shown = {
        task: tuple(map(variant.ask, items))
        for task, items in examples(dataset, tasks, spec.few_shot).items()
    }
    folder = spec.folder or Path("results") / folder_name(spec, description.level, dataset.name)
    price = _price(spec, description)
    versions = {"numbench": __version__, "python": platform.python_version()}
    if description.provider.sdk is not None:
        versions[description.provider.sdk] = version(description.provider.sdk)
    info = RunInfo(
        model=spec.model,
        display=description.display,
        reasoning=description.level,
        dataset=dataset.ref(folder),
        prompt=variant.prompts.ref(tasks),
        tasks=tasks,
        limit=spec.limit,
        settings=_recorded_settings(spec, description, settings, shown),
        versions=versions,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        shard=parse_shard(spec.shard),
        price=price.record if price else None,
        transform=variant.transform.name if variant.transform else None,
        horizon=_horizon_info(spec, sizes) if isinstance(spec, HorizonSpec) else None,
    )
    return PreparedRun(
        spec, description, dataset, tasks, settings, shown, folder, info, variant, price, sizes
    )


def _price(spec: RunSpec, description: ModelDescription, served: str | None = None) -> Price | None:
    """Return the price of an answer by the model `served`, by default by who is expected to."""
    if description.route is None:
        return None
    known, base_url = description.known, description.identity["base_url"]
    if served is None and known.is_retired and known.is_rerouted:
        served = known.successor
    server, route = str(base_url) if base_url else None, description.route
    price = find_price(route, server, spec.params)
    # What the user says of their own server holds whatever it answers with.
    is_users = price is not None and price.own and server is not None
    if served is not None and not is_users and not is_same_model(route, served):
        near, far = route.rpartition("/")[0], route.partition("/")[0]
        names = (f"{near}/{served.rpartition('/')[2]}", f"{far}/{served}")
        price = next(filter(None, (find_price(name, server, spec.params) for name in names)), None)
    return None if price and spec.batch and not price.has_batch_price else price


def _check_options(spec: RunSpec, description: ModelDescription) -> None:
    """Raise BadInput for options that the model cannot have.

    Samples at temperature 0 are refused unless the user gave that temperature, e.g. to measure
    how far a server is from deterministic.
    """
    refusals = (
        (
            description.provider.deterministic,
            "gives the same answer every time",
            "samples temperature",
        ),
        (description.settings.temperature is None, "accepts no temperature", "temperature"),
        (
            not description.provider.takes_prompts,
            "takes no prompts",
            "prompts few_shot max_tokens seed",
        ),
        (not description.takes_seed, "takes no seed in this API", "seed"),
        (
            description.route is None,
            "runs in this process",
            "params headers structured rpm stream base_url api tools",
        ),
        (
            not description.provider.inspects_requests,
            "has a provider without `inspects_requests`",
            "params headers",
        ),
        (not description.provider.takes_tools, "has a provider that takes no tools", "tools"),
    )
    given = {each.name for each in options_of(spec) if getattr(spec, each.name) != each.default}
    for is_refused, reason, names in refusals:
        unusable = [option_name(name) for name in names.split() if name in given]
        if is_refused and unusable:
            raise BadInput(f"{spec.model} {reason}: omit {' and '.join(unusable)}")
    if not description.provider.takes_prompts and spec.transform in _UNREAD_NOTATIONS:
        raise BadInput(
            f"{spec.model} cannot read thousands separators: omit --transform {spec.transform}"
        )
    if spec.samples > 1 and spec.temperature is None and description.settings.temperature == 0:
        raise BadInput(
            f"--samples {spec.samples}: at temperature 0 the samples are nearly identical; add "
            "--temperature T, for example 0.7 (or --temperature 0, if that is what you measure)"
        )
    if spec.tools and "tools" in spec.params:
        raise BadInput("--param tools: --tools sets it; omit one of them")
    check_params(spec.params, description.level_request)


def _recorded_settings(
    spec: RunSpec, description: ModelDescription, settings: RequestSettings, shown: Examples
) -> dict[str, object]:
    """Return the settings of `run.json`: what shapes every request of the run."""
    recorded = asdict(settings) | description.identity
    for name in ("answer_kind", "timeout", "turns"):
        # These belong to a single request, not to the run.
        del recorded[name]
    recorded["params"] = mask_json(settings.params)
    for name in ("params", "tools"):
        if not recorded[name]:
            del recorded[name]
    if spec.headers:
        recorded["headers"] = recorded_headers(spec.headers)
    recorded |= {
        each.name: value
        for each in options_of(RunSpec)
        if each.option.is_recorded and (value := getattr(spec, each.name)) != each.default
    }
    if shown:
        recorded["few_shot_sha256"] = examples_sha256(shown)
    return recorded


def _permitted_sizes(
    spec: HorizonSpec,
    tasks: Sequence[str],
    items: ItemSequences,
    description: ModelDescription,
    settings: RequestSettings,
) -> dict[str, tuple[int, ...]]:
    """Return the sizes of each task whose question and answer fit the limits of the model.

    Raises BadInput if the answers to a task do not fit at small sizes.
    """
    facts, longest, source = description.facts, settings.max_tokens, "--max-tokens or the catalogue"
    if longest is None and facts:
        longest, source = facts.max_output, "the model's limit"
    context = facts.context if facts else None
    permitted = {}
    for name in tasks:
        sizes = task_sizes(TASKS[name], spec.max_size)
        answers = answer_tokens(TASKS[name], sizes)
        prompts = prompt_tokens(TASKS[name], sizes, items)
        permitted[name] = tuple(
            size
            for size, answer, prompt in zip(sizes, answers, prompts, strict=True)
            if (longest is None or answer <= longest)
            and (context is None or prompt + answer <= context)
        )
        if max(permitted[name], default=0) < SMALLEST_MAX_SIZE:
            raise BadInput(
                f"the answers of {name} do not fit {longest:,} tokens "
                f"({source}) even at size {SMALLEST_MAX_SIZE}: raise --max-tokens, "
                "or omit the task"
            )
    return permitted


def _example_questions(sizes: Mapping[str, tuple[int, ...]], items: ItemSequences) -> AskedItems:
    """Return two questions of each task: the one whose request is recorded, and the longest."""
    ids = {
        task: [
            ItemAddress(task, size, 0).id
            for size in (min(permitted, key=lambda n: abs(n - _PREVIEWED_SIZE)), permitted[-1])
        ]
        for task, permitted in sizes.items()
    }
    return AskedItems(Path(DATASET_NAME), items, ids)


def _horizon_info(spec: HorizonSpec, sizes: Mapping[str, tuple[int, ...]]) -> HorizonInfo:
    return HorizonInfo(
        precision=spec.precision,
        max_items=spec.max_items,
        question_seed=spec.question_seed,
        largest={task: permitted[-1] for task, permitted in sizes.items()},
        generator=GENERATOR_VERSION,
        design=DESIGN_VERSION,
    )


def folder_name(spec: RunSpec, level: str, dataset: str) -> str:
    """Return the name of a run folder: `MODEL_LEVEL_DATASET`.

    Then follow other prompts than the paper's, a transformation, examples and a shard, as in
    `_prompts-steps_swap_5-shot_shard-2-of-8`, and tools, as in `_calculator`.
    """
    safe_model = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.model).strip("-.")
    parts = [safe_model, level, dataset]
    if spec.prompts:
        parts.append(f"prompts-{Path(spec.prompts).name}")
    if spec.tools:
        parts.append(re.sub(r"[^\w.]+", "-", spec.tools))
    if spec.transform not in (None, NO_TRANSFORM):
        parts.append(str(spec.transform))
    if spec.few_shot:
        parts.append(f"{spec.few_shot}-shot")
    if shard := parse_shard(spec.shard):
        parts.append(f"shard-{shard.index}-of-{shard.count}")
    return "_".join(parts)


def select_tasks(source: Dataset, tasks: Sequence[str] | None) -> tuple[str, ...]:
    """Return the tasks of a run, in the order of the registry.

    Raises BadInput for a task that is unknown or not in the dataset.
    """
    return _chosen(tasks, source.tasks, source.tasks, f"is not in dataset {source.name}")


def _chosen(
    tasks: Sequence[str] | None, default: Iterable[str], possible: Collection[str], problem: str
) -> tuple[str, ...]:
    """Return the tasks in registry order. Raises BadInput with `problem` for an impossible one."""
    for task in tasks or ():
        check_task_name(task)
        if task not in possible:
            raise BadInput(f"task {task!r} {problem}; use {', '.join(possible)}")
    if tasks is not None and not tasks:
        raise BadInput(f"no task given: use {', '.join(possible)}")
    chosen = set(default if tasks is None else tasks)
    return tuple(task for task in TASKS if task in chosen)


def interleave(groups: Iterable[Sequence[_T]]) -> Iterator[_T]:
    """Yield one element of each group in turn, so that a partial run covers every task."""
    for group in zip_longest(*groups):
        yield from (element for element in group if element is not None)
