"""Export runs as logs of Inspect, for `inspect view` and its analysis functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numbench.ecosystem.item_adapter import METRIC_NAMES, dataset_version
from numbench.errors import BadInput, NumbenchError
from numbench.journal import find_runs
from numbench.models.base import Message
from numbench.records import PAPER, FinishReason, Response, RunInfo
from numbench.runner.few_shot import examples, examples_sha256, messages_before
from numbench.scoring import ScoredItem, ScoredRun, score_run, signature
from numbench.scoring.scored_run import few_shot_count
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import variant_of_run

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults, EvalSample, EvalSpec, EvalStats
    from inspect_ai.model import ModelOutput, ModelUsage, StopReason

_STOP_REASONS: dict[FinishReason | None, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "refusal": "content_filter",
    "other": "unknown",
    None: "unknown",
}

_UNKNOWN_CREATED = "1970-01-01T00:00:00+00:00"
"""The creation time of a log whose run has none, because Inspect requires one."""


def export_runs(paths: Sequence[Path], out: Path) -> Iterator[Path]:
    """Write the runs at or below `paths` to `out` as `.eval` logs, and yield each file.

    Raises BadInput if Inspect is not installed, if a path has no run, or if the dataset of a run
    is not found.
    """
    require_extra("inspect_ai", "inspect")
    from inspect_ai.log import write_eval_log

    for folder in find_runs(paths):
        log = to_log(score_run(folder))
        path = out / _file_name(log)
        out.mkdir(parents=True, exist_ok=True)
        write_eval_log(log, str(path), format="eval")
        yield path


def to_log(run: ScoredRun) -> EvalLog:
    """Return a run, scored under the `exact` protocol, as a log of the task `numbench/v1`.

    The samples of an item are its epochs. Samples without a response are left out, but counted in
    `results.total_samples`. Failed ones have an error and no score, and are not included in the
    means, which are over items, of the means over their epochs.
    """
    from inspect_ai.log import EvalLog

    prefixes = _prompt_prefixes(run)
    rows = [row for task_rows in run.rows.values() for row in task_rows]
    with_response = [(row, row.response) for row in rows if row.response is not None]
    samples = [
        _sample(run.info, row, response, prefixes.get(row.item.task, ()))
        for row, response in with_response
    ]
    return EvalLog(
        status="success" if len(with_response) == len(rows) else "cancelled",
        eval=_spec(run, rows, complete=bool(prefixes)),
        results=_results(samples, len(rows)),
        stats=_stats(run.info, [response for _, response in with_response]),
        samples=samples,
    )


def _prompt_prefixes(run: ScoredRun) -> Mapping[str, Sequence[Message]]:
    """Return the messages before the questions of each task; empty if the prompts have changed."""
    info = run.info
    try:
        variant = variant_of_run(run.path, info)
        if changed_prompts(info.prompt, variant.prompts.ref(info.tasks)):
            return {}
        by_task = {
            task: tuple(map(variant.ask, items))
            for task, items in examples(run.dataset, info.tasks, few_shot_count(info)).items()
        }
    except BadInput:
        return {}
    if by_task and examples_sha256(by_task) != info.settings.get("few_shot_sha256"):
        return {}
    prompts = variant.prompts
    return {task: messages_before(prompts, task, by_task.get(task, ())) for task in run.rows}


def _sample(
    info: RunInfo, row: ScoredItem, response: Response, prefix: Sequence[Message]
) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample

    from numbench.ecosystem.inspect_task import inspect_scores, to_sample

    sample = to_sample(row.item, prefix)
    output = _output(info, response)
    end = _optional_time(response.at)
    usage = output.usage
    return EvalSample(
        id=sample.id,
        epoch=row.sample + 1,
        input=sample.input,
        target=sample.target,
        metadata=sample.metadata | {"response": _response_metadata(response)},
        messages=[*sample.input, *(choice.message for choice in output.choices)],
        output=output,
        scores=inspect_scores(row.item, row.score, info.prompt.working)
        if row.is_answered
        else None,
        error=None
        if row.is_answered
        else EvalError(message=_error_message(response), traceback="", traceback_ansi=""),
        model_usage={info.model: usage} if usage else {},
        started_at=_start_time(end, response.latency),
        completed_at=end.isoformat() if end else None,
        total_time=response.latency,
        working_time=response.latency,
    )


def _output(info: RunInfo, response: Response) -> ModelOutput:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
    )

    model = response.served_model or info.model
    if response.error is not None and not (response.text or response.reasoning_text):
        return ModelOutput(model=model, time=response.latency)
    content: object = response.text
    if response.reasoning_text:
        reasoning = ContentReasoning(reasoning=response.reasoning_text)
        content = [reasoning, ContentText(text=response.text)]
    message = ChatMessageAssistant(content=content, source="generate", model=model)
    choice = ChatCompletionChoice(
        message=message, stop_reason=_STOP_REASONS[response.finish_reason]
    )
    return ModelOutput(
        model=model,
        choices=[choice],
        completion=response.text,
        usage=_usage(response),
        time=response.latency,
    )


def _error_message(response: Response) -> str:
    failure = response.error
    return f"{failure.kind}: {failure.message}" if failure else "no answer"


def _usage(response: Response) -> ModelUsage | None:
    """Return the token counts; None if one is unknown, which Inspect cannot represent.

    The sample's metadata contains the known counts.
    """
    from inspect_ai.model import ModelUsage

    usage = response.usage
    if usage.input is None or usage.generated is None:
        return None
    return ModelUsage(
        input_tokens=usage.input,
        output_tokens=usage.generated,
        total_tokens=usage.input + usage.generated,
        reasoning_tokens=usage.reasoning,
    )


def _response_metadata(response: Response) -> object:
    """Return the response record without its texts."""
    fields = msgspec.to_builtins(response)
    return {k: v for k, v in fields.items() if k not in ("text", "reasoning_text", "schema")}


def _spec(run: ScoredRun, rows: Sequence[ScoredItem], complete: bool) -> EvalSpec:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.model import GenerateConfig

    from numbench.ecosystem.inspect_task import BY_TASK_METRIC, INSPECT_TASK_NAME

    info, source = run.info, run.dataset
    identity = _identity(info)
    arguments = {
        "tasks": list(run.rows),
        "limit": info.limit,
        "few_shot": few_shot_count(info),
        "dataset": source.name,
        # The task of numbench has no such arguments, so that Inspect refuses to retry this log
        # with the questions as they are.
        **({"prompts": info.prompt.name} if info.prompt.name != PAPER else {}),
        **({"transform": info.transform} if info.transform else {}),
    }
    return EvalSpec(
        eval_id=identity,
        run_id=identity,
        task_id=identity,
        created=_iso_time(info.created) or _UNKNOWN_CREATED,
        task=INSPECT_TASK_NAME,
        task_version=dataset_version(source),
        task_registry_name=INSPECT_TASK_NAME,
        task_args=arguments,
        task_args_passed=arguments,
        dataset=EvalDataset(
            name=source.name,
            samples=len(rows) // info.samples,
            sample_ids=[row.item.id for row in rows if row.sample == 0],
            shuffled=False,
        ),
        model=info.model,
        model_generate_config=GenerateConfig(**_generation_settings(info)),
        config=EvalConfig(epochs=info.samples, fail_on_error=False),
        packages=info.versions,
        scorers=[{"name": name, "metrics": [{"name": BY_TASK_METRIC}]} for name in METRIC_NAMES],
        metadata={
            "run": msgspec.to_builtins(info),
            "signatures": {task: signature(run, task) for task in run.rows},
            "messages_complete": complete,
        },
    )


def _results(samples: Sequence[EvalSample], total: int) -> EvalResults:
    """Return the results as computed by the same metric in an evaluation by Inspect.

    The epochs of an item are reduced to their mean first.
    """
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore
    from inspect_ai.scorer import SampleScore, mean_score

    from numbench.ecosystem.inspect_task import BY_TASK_METRIC, by_task

    group = BY_TASK_METRIC.rpartition("/")[2]
    epochs_by_id: dict[str | int, list[EvalSample]] = {}
    for sample in samples:
        if sample.scores:
            epochs_by_id.setdefault(sample.id, []).append(sample)
    reduce = mean_score()
    results = []
    for name in METRIC_NAMES:
        scored = []
        for sample_id, epochs in epochs_by_id.items():
            scores = [epoch.scores[name] for epoch in epochs if epoch.scores]
            score = scores[0] if len(scores) == 1 else reduce(scores)
            metadata = epochs[0].metadata
            scored.append(SampleScore(score=score, sample_id=sample_id, sample_metadata=metadata))
        metrics = {
            metric: EvalMetric(name=metric, group=group, value=value)
            for metric, value in by_task()(scored).items()
        }
        results.append(
            EvalScore(name=name, scorer=name, scored_samples=len(scored), metrics=metrics)
        )
    completed = sum(sample.error is None for sample in samples)
    return EvalResults(total_samples=total, completed_samples=completed, scores=results)


def _stats(info: RunInfo, responses: Sequence[Response]) -> EvalStats:
    """Return the totals of the run; tokens only if all counts are known."""
    from inspect_ai.log import EvalStats
    from inspect_ai.model import ModelUsage

    ends = [end for end in (_optional_time(response.at) for response in responses) if end]
    usages = [_usage(response) for response in responses if response.error is None]
    known = [usage for usage in usages if usage is not None]
    all_known = bool(known) and len(known) == len(usages)
    return EvalStats(
        started_at=_iso_time(info.created),
        completed_at=max(ends).isoformat() if ends else "",
        model_usage={info.model: sum(known, start=ModelUsage())} if all_known else {},
    )


def _generation_settings(info: RunInfo) -> dict[str, int | float]:
    """Return the run's settings that Inspect has a field for."""
    settings = {key: info.settings.get(key) for key in ("temperature", "max_tokens", "seed")}
    return {key: value for key, value in settings.items() if isinstance(value, int | float)}


def _identity(info: RunInfo) -> str:
    """Return an identifier of the run; exporting it again writes the same file."""
    return hashlib.sha256(msgspec.json.encode(info)).hexdigest()[:22]


def _file_name(log: EvalLog) -> str:
    """Return a name like Inspect's own: time, task, identifier."""
    timestamp = log.eval.created.replace(":", "-")
    return f"{timestamp}_{log.eval.task.replace('/', '-')}_{log.eval.task_id}.eval"


def _optional_time(text: str | None) -> datetime | None:
    return None if text is None else _parse_time(text)


def _parse_time(text: str) -> datetime:
    """Parse a time of a run, by default in UTC. Raises NumbenchError if it is not a time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise NumbenchError(f"invalid time {text!r} in the run: expected ISO 8601") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _iso_time(text: str) -> str:
    """Return a time of a run in ISO 8601; empty if it is unknown, as in an imported run."""
    return _parse_time(text).isoformat() if text else ""


def _start_time(end: datetime | None, latency: float | None) -> str | None:
    if end is None or latency is None:
        return None
    return (end - timedelta(seconds=latency)).isoformat()


def require_extra(module: str, extra: str) -> None:
    """Raise BadInput with the install command if a module is not installed."""
    if find_spec(module) is None:
        raise BadInput(f"this needs {module}: pip install 'numbench[{extra}]'")
