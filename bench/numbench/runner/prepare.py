"""Prepare a run: look up model, dataset, questions, folder and first requests, once."""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from numbench._version import __version__
from numbench.core.jsonl import read_json
from numbench.core.secrets import mask_json
from numbench.core.texts import Sentences
from numbench.dataset.store import Dataset, open_dataset
from numbench.errors import BadInput
from numbench.horizon.items import ItemSequences
from numbench.journal.identity import EXAMPLE_HASHES
from numbench.journal.run_folder import INFO, resumed_info
from numbench.models import (
    ModelDescription,
    RequestSettings,
    describe_model,
    open_batch,
    open_model,
)
from numbench.models.catalogue import find_model_provider
from numbench.models.facts import USER_CATALOGUE
from numbench.models.prices import fee_parameters
from numbench.records import RunInfo, parse_shard
from numbench.runner.few_shot import Examples, examples, examples_sha256
from numbench.runner.horizon_questions import example_questions, horizon_info, permitted_sizes
from numbench.runner.options import option_name, options_of
from numbench.runner.prepared_run import PreparedRun, price_of, priced_parameters, server_of
from numbench.runner.recorded_requests import with_requests
from numbench.runner.request_options import check_params, recorded_headers
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.tasks import SCALED_TASKS, TASKS, check_task_name
from numbench.tasks.prompts import QUESTIONS
from numbench.transforms import NO_TRANSFORM, open_variant

_text = Sentences(__file__)

_SETTINGS = frozenset(each.name for each in fields(RequestSettings))

_UNREAD_NOTATIONS = ("grouping", "decimal-comma")
"""Transformations whose numbers the models that take no prompts cannot read."""


def prepare(spec: RunSpec, is_dry: bool = False) -> PreparedRun:
    """Return a run, ready to be planned or executed. It needs no API key before it is executed.

    Raises BadInput for every option that does not suit the model or the run in the folder. A dry
    run only notes why it could not be written there (`refusal`).
    """
    name, level, server = spec.model, spec.reasoning, server_of(spec)
    client = open_batch(name, level, server, needs_key=False) if spec.batch else None
    model, description = None, None
    provider = find_model_provider(spec.model, spec.base_url)
    if provider.in_process or provider.inspects_requests:
        model, description = open_model(name, level, server, needs_key=False)
    prepared = _with_stored_token_limit(resolve(spec, description or describe(spec)))
    if model is not None and provider.inspects_requests:
        prepared = with_requests(model, prepared)
    refusal = ""
    try:
        resumed_info(prepared.folder, prepared.info)
    except BadInput as error:
        if not is_dry:
            raise
        refusal = str(error)
    _check_cost_limit(prepared)
    ready = replace(prepared, client=client or model, refusal=refusal)
    # Whether its questions can be asked is known before anything is written.
    _ = ready.items_by_task
    return ready


def _with_stored_token_limit(prepared: PreparedRun) -> PreparedRun:
    """Return the run with the token limit of its folder in `info`, if it retries truncated answers.

    The requests have the limit that the user gave, which is recorded in their responses, or without
    one that of the folder.
    """
    path, spec = prepared.folder / INFO, prepared.spec
    if "truncated" not in spec.retry or not path.is_file():
        return prepared
    stored = read_json(path, RunInfo).settings.get("max_tokens")
    others = set(spec.retry) - {"truncated"}
    if others and spec.max_tokens not in (None, stored):
        raise BadInput(_text("retry_limit", others=",".join(sorted(others))))
    info = msgspec.structs.replace(
        prepared.info, settings=prepared.info.settings | {"max_tokens": stored}
    )
    if spec.max_tokens is not None or not isinstance(stored, int | None):
        return replace(prepared, info=info)
    return replace(prepared, info=info, settings=replace(prepared.settings, max_tokens=stored))


def _check_cost_limit(prepared: PreparedRun) -> None:
    """Raise BadInput if there is a cost limit that cannot be enforced."""
    if prepared.spec.max_cost is None:
        return
    model, route = prepared.spec.model, prepared.description.route
    params, price = priced_parameters(prepared.spec, prepared.description), prepared.price
    if route is None:
        raise BadInput(_text("runs_here", model=model))
    provider = prepared.description.provider
    if not provider.reports_cost and (names := fee_parameters(params)):
        raise BadInput(_text("unknown_fees", names=", ".join(names)))
    if not provider.reports_cost and (price is None or price.varies):
        about = {"model": model, "route": route, "provider": provider.name}
        raise BadInput(_text("no_price", **about, catalogue=USER_CATALOGUE))


def describe(spec: RunSpec) -> ModelDescription:
    """Return the description of the model. Raises BadInput for an unknown model or level."""
    return describe_model(spec.model, spec.reasoning, server_of(spec))


def resolve(spec: RunSpec, description: ModelDescription) -> PreparedRun:
    """Look up what `spec` refers to, for the model with this `description`.

    Raises BadInput for wrong values.
    """
    _check_options(spec, description)
    given = {
        each.name: value
        for each in options_of(spec)
        if each.option.is_setting and (value := getattr(spec, each.name)) is not None
    }
    changes = {name: value for name, value in given.items() if name in _SETTINGS}
    changes["sampling"] = {k: value for k, value in given.items() if k not in _SETTINGS}
    if spec.tools and spec.structured is None:
        # On many servers a schema of the answer excludes calls.
        changes["structured"] = False
    settings = replace(description.settings, **changes)
    sizes: Mapping[str, tuple[int, ...]] = {}
    if isinstance(spec, HorizonSpec):
        scaled = [name for name, task in TASKS.items() if task.sizes]
        tasks = _chosen(spec.tasks, SCALED_TASKS, scaled, "has no sizes")
        items = ItemSequences(spec.question_seed)
        sizes = permitted_sizes(spec, tasks, items, description, settings)
        dataset: Dataset = example_questions(sizes, items)
    else:
        dataset = open_dataset(spec.dataset)
        tasks = select_tasks(dataset, spec.tasks)
    variant = open_variant(spec.prompt_set, spec.transform)
    prompts = variant.prompts
    if spec.tools and not prompts.options.tools:
        raise BadInput(_text("no_tools", prompts=prompts.name, file=prompts.folder / QUESTIONS))
    tasks = variant.select_tasks(tasks, is_chosen=spec.tasks is not None)
    shown = {
        task: tuple(map(variant.ask, items))
        for task, items in examples(dataset, tasks, spec.few_shot).items()
    }
    folder = spec.folder or Path("results") / folder_name(spec, description.level, dataset.name)
    price = price_of(spec, description)
    versions = {"numbench": __version__, "python": platform.python_version()}
    if description.provider.sdk is not None:
        versions[description.provider.sdk] = version(description.provider.sdk)
    info = RunInfo(
        model=spec.model,
        display=description.display,
        reasoning=description.level,
        dataset=dataset.ref(folder),
        prompt=prompts.ref(tasks),
        tasks=tasks,
        limit=spec.limit,
        settings=_recorded_settings(spec, description, settings, shown),
        versions=versions,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        shard=parse_shard(spec.shard),
        price=price.record if price else None,
        transform=variant.transform.name if variant.transform else None,
        horizon=horizon_info(spec, sizes) if isinstance(spec, HorizonSpec) else None,
    )
    return PreparedRun(
        spec, description, dataset, settings, shown, folder, info, variant, price, sizes
    )


def _check_options(spec: RunSpec, description: ModelDescription) -> None:
    """Raise BadInput for options that the model cannot have.

    Samples at temperature 0 are refused unless the user gave that temperature, e.g. to measure
    how far a server is from deterministic.
    """
    known = (each.name for each in options_of(spec) if each.option.is_setting)
    sampling = " ".join(name for name in known if name not in _SETTINGS)
    added = f"params headers {sampling}"
    of_servers = f"params headers structured rpm stream base_url api tools {sampling}"
    of_prompts = "prompts few_shot max_tokens seed"
    provider, temperature = description.provider, description.settings.temperature
    refusals = (
        (provider.deterministic, "gives the same answer every time", "samples temperature"),
        (temperature is None, "accepts no temperature", "temperature"),
        (not provider.takes_prompts, "takes nothing but questions", of_prompts),
        (not description.takes_seed, "takes no seed in this API", "seed"),
        (description.route is None, "runs in this process", of_servers),
        (not provider.inspects_requests, "has a provider without `inspects_requests`", added),
        (not provider.takes_tools, "has a provider that takes no tools", "tools"),
    )
    given = [each.name for each in options_of(spec) if getattr(spec, each.name) != each.default]
    for is_refused, reason, names in refusals:
        unusable = [option_name(name) for name in names.split() if name in given]
        if is_refused and unusable:
            raise BadInput(f"{spec.model} {reason}: omit {' and '.join(unusable)}")
    if not provider.takes_prompts and spec.transform in _UNREAD_NOTATIONS:
        raise BadInput(_text("unread", model=spec.model, transform=spec.transform))
    if spec.samples > 1 and spec.temperature is None and temperature == 0:
        raise BadInput(_text("nearly_identical", samples=spec.samples))
    check_params(spec.params, description.level_request, {*sampling.split(), "tools"} & {*given})


def _recorded_settings(
    spec: RunSpec, description: ModelDescription, settings: RequestSettings, shown: Examples
) -> dict[str, object]:
    """Return the settings of `run.json`: what shapes every request of the run."""
    recorded = asdict(settings) | description.identity
    for name in ("answer_kind", "timeout", "turns"):
        # These belong to a single request, not to the run.
        del recorded[name]
    recorded["params"] = mask_json(settings.params)
    for name in ("params", "tools", "sampling"):
        if not recorded[name]:
            del recorded[name]
    if spec.headers:
        recorded["headers"] = recorded_headers(spec.headers)
    recorded |= {
        each.name: value
        for each in options_of(spec)
        if each.option.is_recorded and (value := getattr(spec, each.name)) != each.default
    }
    if shown:
        recorded[EXAMPLE_HASHES] = examples_sha256(shown)
    return recorded


def folder_name(spec: RunSpec, level: str, dataset: str) -> str:
    """Return the name of a run folder: `MODEL_LEVEL_DATASET`.

    Then follow other prompts than the paper's, a transformation, examples and a shard, as in
    `_prompts-steps_swap_5-shot_shard-2-of-8`, and tools, as in `_calculator`.
    """
    safe_model = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.model).strip("-.")
    shard = parse_shard(spec.shard)
    parts = (
        safe_model,
        level,
        dataset,
        spec.prompts and f"prompts-{Path(spec.prompts).name}",
        spec.tools and re.sub(r"[^\w.]+", "-", spec.tools),
        spec.transform != NO_TRANSFORM and spec.transform,
        spec.few_shot and f"{spec.few_shot}-shot",
        shard and f"shard-{shard.index}-of-{shard.count}",
    )
    return "_".join(str(part) for part in parts if part)


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
