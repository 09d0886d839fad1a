"""The benchmark as a task of Inspect: `inspect eval numbench/v1 --model …`.

Inspect imports this module by the entry point `numbench` and finds the task, its scorers and
their metric under names that begin with `numbench/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
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

from bench import __version__
from bench.dataset.store import Dataset, open_dataset
from bench.ecosystem.measures import measures, opening, written
from bench.errors import BadInput
from bench.models.base import Message
from bench.records import FinishReason, Item, Response, Score
from bench.runner.few_shot import Examples, examples
from bench.runner.selection import PROMPTS, choose, interleaved
from bench.scoring import score_exact
from bench.tasks import TASKS
from bench.tasks.phrasing import prompts

NAME = "numbench/v1"
METRIC = "numbench/by_task"

_FINISH: dict[StopReason, FinishReason] = {
    "stop": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
}
_MESSAGES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
_Function = TypeVar("_Function", bound=Callable[..., object])


def _named(function: _Function) -> _Function:
    """`function` without its module, so that Inspect takes its registered name as it is.

    Inspect would put the import package before it, in some ways of installing and not in others.
    """
    function.__module__ = "numbench"
    return function


def conversation(messages: Sequence[Message]) -> list[ChatMessage]:
    """Our messages as Inspect's."""
    return [_MESSAGES[role](content=content) for role, content in messages]


def sample(item: Item, before: Sequence[Message]) -> Sample:
    """An item as a sample; its metadata hold the whole item."""
    return Sample(
        id=item.id,
        input=[*conversation(before), ChatMessageUser(content=item.prompt)],
        target=written(item.answer),
        metadata=msgspec.to_builtins(item),
    )


def judged(item: Item, score: Score) -> dict[str, InspectScore]:
    """One of our scores as Inspect's, by the name of the scorer."""
    answer = None if score.parsed is None else written(score.parsed)
    verdict = "right" if score.exact_match else score.error_kind or score.status
    known = msgspec.to_builtins(score) | {"truth": written(item.answer)}
    return {
        name: InspectScore(
            value=value,
            answer=answer,
            explanation=f"{verdict}; the answer is {known['truth']}",
            metadata=known,
        )
        for name, value in measures(item, score).items()
    }


def _by_task() -> Metric:
    """Mean and standard error for each task and for all items together."""

    def computed(scores: list[SampleScore]) -> dict[str, float]:
        groups = {name: [one for one in scores if _task_of(one) == name] for name in TASKS}
        figures = {}
        for name, group in {"all": scores, **groups}.items():
            if group:
                figures[name] = mean()(group)
                figures[f"{name}_stderr"] = stderr()(group)
        return figures

    return computed


def _task_of(one: SampleScore) -> str:
    return str(one.sample_metadata["task"])


by_task = metric(name=METRIC)(_named(_by_task))


def _judge(measure: str) -> Scorer:
    async def judge(state: TaskState, target: Target) -> InspectScore:
        item = msgspec.convert(state.metadata, Item)
        output = state.output
        response = Response(
            item_id=item.id,
            text=output.completion,
            finish_reason=_FINISH.get(output.stop_reason, "other") if output.choices else None,
        )
        return judged(item, score_exact(item, response))[measure]

    return judge


def _log_smape() -> Scorer:
    """Log-sMAPE, and exact match in the comparison tasks."""
    return _judge("log_smape")


def _exact_match() -> Scorer:
    """Whether the value is right to 15 significant digits, whatever its notation."""
    return _judge("exact_match")


def _compliance() -> Scorer:
    """Whether the response has the form that was asked for."""
    return _judge("compliance")


def _scorer(function: Callable[[], Scorer]) -> Callable[[], Scorer]:
    name = f"numbench/{function.__name__.removeprefix('_')}"
    wrapped: Callable[[], Scorer] = scorer(metrics=[by_task()], name=name)(_named(function))
    return wrapped


log_smape = _scorer(_log_smape)
exact_match = _scorer(_exact_match)
compliance = _scorer(_compliance)


def _v1(
    tasks: str | list[str] = "all",
    limit: int | None = None,
    few_shot: int = 0,
    dataset: str = "v1",
) -> Task:
    """Nine kinds of arithmetic with exact answers.

    tasks: names separated by commas, or all. limit: items per task. few_shot: worked examples
    before each question, from the validation split. dataset: name or folder of another dataset.
    BadInput for what does not exist.
    """
    names = tasks.split(",") if isinstance(tasks, str) else tasks
    source = open_dataset(dataset)
    chosen = choose(source, None if names == ["all"] else names)
    if limit is not None and limit < 1:
        raise BadInput(f"limit={limit}: give 1 or more")
    return Task(
        name=NAME,
        dataset=_samples(source, chosen, limit, examples(source, chosen, few_shot)),
        solver=generate(),
        scorer=[log_smape(), exact_match(), compliance()],
        version=f"{source.name}@{source.manifest.sha256[:6]}",
        metadata={
            "numbench": __version__,
            "dataset_sha256": source.manifest.sha256,
            "prompt": PROMPTS,
            "prompt_sha256": prompts(PROMPTS).ref.sha256,
            "protocol": "exact",
        },
    )


def _samples(
    source: Dataset, tasks: Sequence[str], limit: int | None, shown: Examples
) -> MemoryDataset:
    before = {name: opening(name, shown.get(name, ())) for name in tasks}
    items = interleaved(source.by_task[name][:limit] for name in tasks)
    return MemoryDataset(
        [sample(item, before[item.task]) for item in items],
        name=source.name,
        location=source.path.as_posix(),
    )


v1 = task(name=NAME)(_named(_v1))
