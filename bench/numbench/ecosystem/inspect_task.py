"""The benchmark as a task of Inspect: `inspect eval numbench/v1 --model …`.

Inspect imports this module through its entry point `numbench`. The task, its scorers and their
metric are registered under names that begin with `numbench/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ModelOutput,
    StopReason,
)
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Scorer,
    Target,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.scorer import Score as InspectScore
from inspect_ai.solver import TaskState, generate

from numbench._version import __version__
from numbench.dataset.store import open_dataset
from numbench.ecosystem.export import METRIC_NAMES, metric_values
from numbench.ecosystem.inspect_log import INSPECT_TASK_NAME
from numbench.errors import BadInput
from numbench.models.base import Message
from numbench.records import PAPER, FinishReason, Item, Response, Score, answer_text
from numbench.runner.few_shot import examples, messages_before
from numbench.runner.prepare import select_tasks
from numbench.runner.request_source import interleave
from numbench.scoring import categorize, score_exact
from numbench.tasks.prompts import load_prompt_set

BY_TASK_METRIC = "numbench/by_task"

STOP_REASONS: dict[FinishReason, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "refusal": "content_filter",
}
_FINISH_REASONS = {theirs: ours for ours, theirs in STOP_REASONS.items()}
_MESSAGE_TYPES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
_Function = TypeVar("_Function", bound=Callable[..., object])


def _without_package(function: _Function) -> _Function:
    """Set the module of `function` so that Inspect does not change its registered name.

    Inspect adds the import package to the name, but for some kinds of installation only. It does
    not for a module that is not imported.
    """
    function.__module__ = "numbench:inspect"
    return function


def to_sample(item: Item, prefix: Sequence[Message]) -> Sample:
    """Convert an item to a sample; the metadata contain the whole item."""
    return Sample(
        id=item.id,
        input=[
            *(_MESSAGE_TYPES[role](content=content) for role, content in prefix),
            ChatMessageUser(content=item.prompt),
        ],
        target=answer_text(item.answer),
        metadata=msgspec.to_builtins(item),
    )


def finish_reason(output: ModelOutput) -> FinishReason | None:
    """Return why an output ended, None if there is none."""
    if not output.choices:
        return None
    if output.stop_reason == "model_length":
        return "length"
    return _FINISH_REASONS.get(output.stop_reason, "other")


def inspect_scores(
    item: Item, score: Score, allows_working: bool = False
) -> dict[str, InspectScore]:
    """Convert a score to Inspect's scores, by name of the scorer.

    allows_working: whether the prompt allows text before the answer.
    """
    answer = None if score.parsed is None else answer_text(score.parsed)
    category = categorize(score)
    metadata = msgspec.to_builtins(score) | {"truth": answer_text(item.answer)}
    return {
        name: InspectScore(
            value=value,
            answer=answer,
            explanation=f"{category}; the answer is {metadata['truth']}",
            metadata=metadata,
        )
        for name, value in metric_values(item, score, allows_working).items()
    }


def _by_task() -> Metric:
    """Compute mean and standard error of all items and of each task among them."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        groups = {"all": scores}
        for score in scores:
            groups.setdefault(str(score.sample_metadata["task"]), []).append(score)
        values = {}
        for name, group in groups.items():
            if group:
                values[name] = mean()(group)
                values[f"{name}_stderr"] = stderr()(group)
        return values

    return compute


by_task = metric(name=BY_TASK_METRIC)(_without_package(_by_task))


def _numbench_scorer(metric_name: str) -> Callable[[], Scorer]:
    """Return the scorer of one of `METRIC_NAMES`."""

    async def score(state: TaskState, target: Target) -> InspectScore:
        item = msgspec.convert(state.metadata, Item)
        output = state.output
        reason = finish_reason(output)
        response = Response(item_id=item.id, text=output.completion, finish_reason=reason)
        return inspect_scores(item, score_exact(item, response))[metric_name]

    make: Callable[[], Scorer] = _without_package(lambda: score)
    decorate = scorer(metrics=[by_task()], name=f"numbench/{metric_name}")
    wrapped: Callable[[], Scorer] = decorate(make)
    return wrapped


log_smape, exact_match, compliance = map(_numbench_scorer, METRIC_NAMES)


# `inspect list tasks` reads the source: it needs a decorator with a literal name.
@task(name="numbench/v1")  # type: ignore[untyped-decorator]
@_without_package
def v1(
    tasks: str | list[str] = "all",
    limit: int | None = None,
    few_shot: int = 0,
    dataset: str = "v1",
) -> Task:
    """Arithmetic questions with exact answers.

    tasks: names separated by commas, or `all` of the dataset. limit: items per task. few_shot:
    number of worked examples before each question, from the validation split. dataset: name or
    folder of the dataset.

    Raises BadInput for an unknown task or dataset and for invalid numbers.
    """
    names = tasks.split(",") if isinstance(tasks, str) else tasks
    source = open_dataset(dataset)
    selected = select_tasks(source, None if names == ["all"] else names)
    if limit is not None and limit < 1:
        raise BadInput(f"limit={limit}: give 1 or more")
    shown, prompts = examples(source, selected, few_shot), load_prompt_set()
    prefixes = {name: messages_before(prompts, name, shown.get(name, ())) for name in selected}
    items = interleave(source.by_task[name][:limit] for name in selected)
    return Task(
        name=INSPECT_TASK_NAME,
        dataset=MemoryDataset(
            [to_sample(item, prefixes[item.task]) for item in items],
            name=source.name,
            location=source.path.as_posix(),
        ),
        solver=generate(),
        scorer=[log_smape(), exact_match(), compliance()],
        version=source.label,
        metadata={
            "numbench": __version__,
            "dataset_sha256": source.manifest.sha256,
            "prompt": PAPER,
            "prompt_sha256": prompts.ref(selected).sha256,
            "protocol": "exact",
        },
    )
