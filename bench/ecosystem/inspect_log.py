"""Runs as logs of Inspect, to be looked at beside other evaluations: `inspect view`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.dataset.store import Dataset
from bench.ecosystem.extras import need
from bench.ecosystem.measures import MEASURES, opening
from bench.errors import BadInput, NumbenchError
from bench.journal import find_runs
from bench.models.base import Message
from bench.records import FinishReason, Response, RunInfo
from bench.runner.few_shot import examples, fingerprint
from bench.scoring import Row, ScoredRun, score_run, signature
from bench.scoring.run import NOT_ANSWERED, shots
from bench.tasks.phrasing import prompts

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults, EvalSample, EvalSpec, EvalStats
    from inspect_ai.model import ModelOutput, ModelUsage, StopReason

_STOP: dict[FinishReason | None, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "refusal": "content_filter",
    "other": "unknown",
    None: "unknown",
}


def export_runs(paths: Sequence[Path], out: Path) -> Iterator[Path]:
    """Write the runs at or below `paths` as `.eval` logs into `out`; the file of each.

    BadInput without Inspect, where there is no run, or where its dataset cannot be found.
    """
    need("inspect_ai", "inspect")
    from inspect_ai.log import write_eval_log

    for folder in find_runs(paths):
        log = to_log(score_run(folder))
        path = out / _file_name(log)
        out.mkdir(parents=True, exist_ok=True)
        write_eval_log(log, str(path), format="eval")
        yield path


def to_log(run: ScoredRun) -> EvalLog:
    """A run, scored by the protocol `exact`, as a log of the task `numbench/v1`.

    Items that were never asked are left out and counted in `results.total_samples`; failed ones
    have an error and no score, and enter no mean.
    """
    from inspect_ai.log import EvalLog

    before = _openings(run)
    rows = [row for group in run.rows.values() for row in group]
    asked = [(row, row.response) for row in rows if row.response is not None]
    samples = [
        _sample(run.info, row, response, before.get(row.item.task, ())) for row, response in asked
    ]
    return EvalLog(
        status="success" if len(asked) == len(rows) else "cancelled",
        eval=_spec(run, rows, complete=bool(before)),
        results=_results(samples, len(rows)),
        stats=_stats(run.info, [response for _, response in asked]),
        samples=samples,
    )


def _openings(run: ScoredRun) -> Mapping[str, Sequence[Message]]:
    """What came before the questions of each task; empty where that is not certain any more."""
    info = run.info
    try:
        if prompts(info.prompt.name).ref.sha256 != info.prompt.sha256:
            return {}
        shown = examples(run.dataset, info.tasks, shots(info))
    except BadInput:
        return {}
    if shown and fingerprint(shown) != info.settings.get("few_shot_sha256"):
        return {}
    return {task: opening(task, shown.get(task, ())) for task in run.rows}


def _sample(info: RunInfo, row: Row, response: Response, before: Sequence[Message]) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample

    from bench.ecosystem.inspect_task import judged, sample

    asked = sample(row.item, before)
    output = _output(info, response)
    failed = row.score.status in NOT_ANSWERED
    end = _time(response.at)
    usage = output.usage
    return EvalSample(
        id=asked.id,
        epoch=1,
        input=asked.input,
        target=asked.target,
        metadata=asked.metadata | {"response": _known(response)},
        messages=[*asked.input, *(choice.message for choice in output.choices)],
        output=output,
        scores=None if failed else judged(row.item, row.score),
        error=EvalError(message=_why(response), traceback="", traceback_ansi="")
        if failed
        else None,
        model_usage={info.model: usage} if usage else {},
        started_at=_began(end, response.latency),
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
    if response.error is not None and not response.text:
        return ModelOutput(model=model, time=response.latency)
    content: object = response.text
    if response.reasoning_text:
        thoughts = ContentReasoning(reasoning=response.reasoning_text)
        content = [thoughts, ContentText(text=response.text)]
    message = ChatMessageAssistant(content=content, source="generate", model=model)
    choice = ChatCompletionChoice(message=message, stop_reason=_STOP[response.finish_reason])
    return ModelOutput(
        model=model,
        choices=[choice],
        completion=response.text,
        usage=_usage(response),
        time=response.latency,
    )


def _why(response: Response) -> str:
    failure = response.error
    return f"{failure.kind}: {failure.message}" if failure else "no answer"


def _usage(response: Response) -> ModelUsage | None:
    """Inspect's counts know no "unknown": None where one is, and ours are in the metadata."""
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


def _known(response: Response) -> object:
    """What our record says beside the text."""
    kept = msgspec.to_builtins(response)
    return {key: kept[key] for key in kept if key not in ("text", "reasoning_text", "schema")}


def _spec(run: ScoredRun, rows: Sequence[Row], complete: bool) -> EvalSpec:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.model import GenerateConfig

    from bench.ecosystem.inspect_task import METRIC, NAME

    info, source = run.info, run.dataset
    identity = _identity(info)
    arguments = {
        "tasks": list(run.rows),
        "limit": info.limit,
        "few_shot": shots(info),
        "dataset": source.name,
    }
    return EvalSpec(
        eval_id=identity,
        run_id=identity,
        task_id=identity,
        created=_stamp(info.created),
        task=NAME,
        task_version=_version(source),
        task_registry_name=NAME,
        task_args=arguments,
        task_args_passed=arguments,
        dataset=EvalDataset(
            name=source.name,
            samples=len(rows),
            sample_ids=[row.item.id for row in rows],
            shuffled=False,
        ),
        model=info.model,
        model_generate_config=GenerateConfig(**_generation(info)),
        config=EvalConfig(epochs=1, fail_on_error=False),
        packages=info.versions,
        scorers=[{"name": name, "metrics": [{"name": METRIC}]} for name in MEASURES],
        metadata={
            "run": msgspec.to_builtins(info),
            "signatures": {task: signature(run, task) for task in run.rows},
            "messages_complete": complete,
        },
    )


def _results(samples: Sequence[EvalSample], total: int) -> EvalResults:
    """Figures by Inspect's own metric, as an evaluation there would have them."""
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore
    from inspect_ai.scorer import SampleScore

    from bench.ecosystem.inspect_task import METRIC, by_task

    group = METRIC.rpartition("/")[2]
    results = []
    for name in MEASURES:
        scored = [
            SampleScore(score=one.scores[name], sample_id=one.id, sample_metadata=one.metadata)
            for one in samples
            if one.scores
        ]
        metrics = {
            figure: EvalMetric(name=figure, group=group, value=value)
            for figure, value in by_task()(scored).items()
        }
        results.append(
            EvalScore(name=name, scorer=name, scored_samples=len(scored), metrics=metrics)
        )
    done = sum(one.error is None for one in samples)
    return EvalResults(total_samples=total, completed_samples=done, scores=results)


def _stats(info: RunInfo, responses: Sequence[Response]) -> EvalStats:
    """Totals of the run; of tokens only where all are known."""
    from inspect_ai.log import EvalStats
    from inspect_ai.model import ModelUsage

    ends = [end for end in (_time(response.at) for response in responses) if end]
    usages = [_usage(response) for response in responses if response.error is None]
    known = [usage for usage in usages if usage is not None]
    whole = bool(known) and len(known) == len(usages)
    return EvalStats(
        started_at=_stamp(info.created),
        completed_at=max(ends).isoformat() if ends else "",
        model_usage={info.model: sum(known, start=ModelUsage())} if whole else {},
    )


def _generation(info: RunInfo) -> dict[str, int | float]:
    """The settings for which Inspect has a name, where the run gave them."""
    given = {key: info.settings.get(key) for key in ("temperature", "max_tokens", "seed")}
    return {key: value for key, value in given.items() if isinstance(value, int | float)}


def _version(source: Dataset) -> str:
    return f"{source.name}@{source.manifest.sha256[:6]}"


def _identity(info: RunInfo) -> str:
    """The same for the same run, so that exporting it again writes the same file."""
    return hashlib.sha256(msgspec.json.encode(info)).hexdigest()[:22]


def _file_name(log: EvalLog) -> str:
    """As Inspect names its own: time, task, identity."""
    stamp = log.eval.created.replace(":", "-")
    return f"{stamp}_{log.eval.task.replace('/', '-')}_{log.eval.task_id}.eval"


def _time(text: str | None) -> datetime | None:
    return None if text is None else _read(text)


def _read(text: str) -> datetime:
    """A point in time from a record. NumbenchError where it is none."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise NumbenchError(f"{text!r} in the run is no time") from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _stamp(text: str) -> str:
    return _read(text).isoformat()


def _began(end: datetime | None, latency: float | None) -> str | None:
    if end is None or latency is None:
        return None
    return (end - timedelta(seconds=latency)).isoformat()
