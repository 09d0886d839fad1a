"""A run that is ready: everything that its specification refers to is looked up once.

A plan puts numbers to it, and `execution` executes it; a suite is a list of plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from numbench.dataset.store import Dataset
from numbench.errors import BadInput
from numbench.horizon import Limits
from numbench.horizon.items import AskedItems
from numbench.models import (
    Message,
    Model,
    ModelDescription,
    Request,
    RequestSettings,
    Server,
    check_key,
    open_model,
)
from numbench.models.facts import today
from numbench.models.prices import Price, find_answer_price, with_cost
from numbench.records import Completion, Item, ItemSample, RecordedRequest, RunInfo
from numbench.runner.few_shot import Examples, messages_before
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.tasks import TASKS
from numbench.tasks.base import check_item
from numbench.tasks.calculator import MAX_CALLS, Calculator, parse_calculator
from numbench.transforms import Variant

if TYPE_CHECKING:
    from numbench.horizon.measurement import TaskMeasurement
    from numbench.models.batch_client import BatchService

_NO_PARAMS: dict[str, int] = {}

_CompletionT = TypeVar("_CompletionT", bound=Completion)


@dataclass(frozen=True)
class PreparedRun:
    """A RunSpec with its dataset, model and folder looked up; nothing is sent or written.

    settings: a template for the settings of the requests. examples, items: as they are asked. info:
    the content of `run.json`. variant: prompts and transformation. price: that of a request, with
    `discount` in a batch job; None if it is unknown or the model runs in this process. sizes: those
    that a horizon measurement may ask, by task; its dataset has only examples of the questions.
    requests: the first one of each task, as far as they are known. client: what answers them, the
    batch API with `--batch`; None if it is opened only for the run. refusal: why the run could not
    be written to its folder, if it is only planned.
    """

    spec: RunSpec
    description: ModelDescription
    dataset: Dataset
    settings: RequestSettings
    examples: Examples
    folder: Path
    info: RunInfo
    variant: Variant
    price: Price | None
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    requests: Mapping[str, RecordedRequest] = field(default_factory=dict)
    client: Model | BatchService | None = None
    refusal: str = ""
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
            self._prices[key] = price_of(self.spec, known, served)
        discount = known.provider.batch_discount if is_batch else 0.0
        surcharges = known.known.surcharges or {}
        return with_cost(completion, self._prices[key], discount, surcharges)

    @cached_property
    def items_by_task(self) -> dict[str, list[Item]]:
        """The items of each task, in the dataset's order, without their sampling parameters.

        They are in memory during the run, so that equal parts of them are kept once. Raises
        BadInput for items that cannot be asked.
        """
        by_task = {
            task: [
                structs.replace(item, task=task, operator=intern(item.operator), params=_NO_PARAMS)
                for item in map(self.ask, self.selected(task))
            ]
            for task in self.info.tasks
        }
        ids = Counter(item.id for items in by_task.values() for item in items)
        if repeated := next((id_ for id_, count in ids.items() if count > 1), None):
            raise BadInput(f"{self.dataset.path}: two questions have the id {repeated}")
        return by_task

    def ask(self, item: Item) -> Item:
        """Return an item as it is asked. Raises BadInput for one that no task could have made."""
        try:
            check_item(TASKS[item.task], item)
            return self.variant.ask(item)
        except (LookupError, ValueError) as error:
            reason = error if isinstance(error, ValueError) else f"{error} is missing"
            raise BadInput(f"{self.dataset.path}, question {item.id}: {reason}") from error

    def selected(self, task: str) -> Sequence[Item]:
        """Return the items of a task that the run asks, as the dataset has them."""
        return self.info.select_items(self.dataset.by_task[task])

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
    def retry_token_limit(self) -> int | None:
        """The token limit of truncated answers that are retried, None if it is that of the run."""
        limit = self.settings.max_tokens
        return None if self.info.settings["max_tokens"] == limit else limit

    def prompt_prefix(self, task: str) -> tuple[Message, ...]:
        """Return the messages before a question of `task`: system prompt and examples."""
        return messages_before(self.variant.prompts, task, self.examples.get(task, ()))

    def prefix_characters(self, task: str) -> int:
        """Return the length of the messages before a question of `task`."""
        return sum(len(message.content) for message in self.prompt_prefix(task))

    def request(self, requested: ItemSample) -> Request:
        """Return the request for one sample of an item.

        A seed differs between samples, because the same seed may give the same answer.
        """
        prefix, settings = self._request_templates[requested.task]
        seed = None if settings.seed is None else settings.seed + requested.sample
        return Request(
            (*prefix, Message("user", requested.item.prompt)),
            replace(settings, seed=seed, turns=requested.turns),
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
            for task in self.info.tasks
        }

    def open_client(self) -> Model | BatchService:
        """Return what answers the requests. Raises BadInput if its key is missing."""
        spec, server = self.spec, server_of(self.spec)
        check_key(spec.model, self.description, server)
        # The requests of some models cannot be seen before they are sent, nor are they opened.
        return self.client or open_model(spec.model, spec.reasoning, server).model

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


def price_of(
    spec: RunSpec, description: ModelDescription, served: str | None = None
) -> Price | None:
    """Return the price of an answer by the model `served`; by default by who is expected to."""
    if description.route is None:
        return None
    known, base_url = description.known, description.identity["base_url"]
    if served is None and known.is_retired and known.is_rerouted:
        served = known.successor
    server = str(base_url) if base_url else None
    params = priced_parameters(spec, description)
    return find_answer_price(description.route, server, params, served, spec.batch)


def priced_parameters(spec: RunSpec, description: ModelDescription) -> dict[str, object]:
    """Return the parameters that may change the price: those of the user and of the catalogue."""
    return {**description.settings.request, **spec.params}
