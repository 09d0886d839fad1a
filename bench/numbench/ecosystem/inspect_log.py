"""Runs as logs of Inspect. `numbench.ecosystem.inspect_import` reads them.

An exported log is for `inspect view` and Inspect's analysis functions. Its metadata contain the
records of the run and of each response, so that its import loses nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numbench.ecosystem.export import METRIC_NAMES, require_extra
from numbench.errors import BadInput
from numbench.journal.identity import EXAMPLE_HASHES
from numbench.journal.run_folder import find_runs, read_info, utc_time
from numbench.models.base import Message
from numbench.records import PAPER, Response, RunInfo, Usage
from numbench.runner.few_shot import examples, examples_sha256, messages_before
from numbench.scoring import ScoredItem, ScoredRun, score_run, signature
from numbench.scoring.scored_run import few_shot_count
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import variant_of_run

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalSpec
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage

INSPECT_TASK_NAME = "numbench/v1"

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
        created = log.eval.created.replace(":", "-")
        # Inspect reads the parts of a name between underscores.
        name = folder.name.replace("_", "-")
        path = out / f"{created}_{name}_{log.eval.task_id[:8]}.eval"
        out.mkdir(parents=True, exist_ok=True)
        write_eval_log(log, str(path), format="eval")
        yield path


def to_log(run: ScoredRun) -> EvalLog:
    """Return a run, scored under the `exact` protocol, as a log of the task `numbench/v1`.

    The samples of an item are its epochs. Samples without a response are left out, but counted in
    `results.total_samples`. Failed ones have an error and no score, and are not included in the
    means, which are over items, of the means over their epochs.
    """
    from inspect_ai.log import EvalLog, EvalStats, recompute_metrics
    from inspect_ai.model import ModelUsage

    prefixes = _prompt_prefixes(run)
    rows = [row for task_rows in run.rows.values() for row in task_rows]
    samples = [
        _sample(run.info, row, row.response, prefixes.get(row.item.task, ()))
        for row in rows
        if row.response is not None
    ]
    usages = [sample.output.usage for sample in samples if sample.error is None]
    # Without the usage of a sample, that of the run is unknown.
    known = usages if all(usages) else []
    log = EvalLog(
        status="success" if len(samples) == len(rows) else "cancelled",
        eval=_spec(run, rows, complete=bool(prefixes)),
        stats=EvalStats(
            model_usage={run.info.model: sum(known, start=ModelUsage())} if known else {}
        ),
        samples=samples,
    )
    recompute_metrics(log)
    assert log.results
    log.results.total_samples = len(rows)
    return log


def _prompt_prefixes(run: ScoredRun) -> Mapping[str, Sequence[Message]]:
    """Return the messages before the questions of each task; empty if the prompts have changed."""
    info = run.info
    try:
        variant = variant_of_run(run.path, info)
        shown = examples(run.dataset, info.tasks, few_shot_count(info))
        has_changed = bool(changed_prompts(info.prompt, variant.prompts.ref(info.tasks)))
    except BadInput:
        return {}
    asked = {task: tuple(map(variant.ask, items)) for task, items in shown.items()}
    if has_changed or examples_sha256(asked) != info.settings.get(EXAMPLE_HASHES, {}):
        return {}
    return {task: messages_before(variant.prompts, task, asked.get(task, ())) for task in run.rows}


def _sample(
    info: RunInfo, row: ScoredItem, response: Response, prefix: Sequence[Message]
) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample

    from numbench.ecosystem.inspect_task import inspect_scores, to_sample

    sample = to_sample(row.item, prefix)
    output = _output(info, response)
    scores, error = None, None
    if row.is_answered:
        scores = inspect_scores(row.item, row.score, info.prompt.working)
    else:
        failure = response.error
        message = f"{failure.kind}: {failure.message}" if failure else "no answer"
        error = EvalError(message=message, traceback="", traceback_ansi="")
    texts = ("text", "reasoning_text", "schema")
    record = {k: v for k, v in msgspec.to_builtins(response).items() if k not in texts}
    return EvalSample(
        id=sample.id,
        epoch=row.sample + 1,
        input=sample.input,
        target=sample.target,
        metadata=sample.metadata | {"response": record},
        messages=[
            *sample.input,
            *(message for turn in response.turns for message in _turn_messages(info, turn)),
            *(choice.message for choice in output.choices),
        ],
        output=output,
        scores=scores,
        error=error,
        model_usage={info.model: output.usage} if output.usage else {},
        completed_at=utc_time(response.at or "") or None,
        total_time=response.latency,
    )


def _turn_messages(info: RunInfo, turn: Response) -> Iterator[ChatMessage]:
    """Yield a reply with calls, and the results of the calls."""
    from inspect_ai.model import ChatMessageTool
    from inspect_ai.tool import ToolCall, ToolCallError

    message = _output(info, turn).message
    message.tool_calls = [
        ToolCall(id=call.id, function=call.name, arguments={"arguments": call.arguments})
        for call in turn.calls
    ]
    yield message
    for call in turn.calls:
        error = ToolCallError("unknown", call.result or "") if call.failed else None
        yield ChatMessageTool(
            content=call.result or "", tool_call_id=call.id, function=call.name, error=error
        )


def _output(info: RunInfo, response: Response) -> ModelOutput:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
    )

    from numbench.ecosystem.inspect_task import STOP_REASONS

    model = response.served_model or info.model
    is_empty = response.error is not None and not (response.text or response.reasoning_text)
    content: object = response.text
    if response.reasoning_text:
        reasoning = ContentReasoning(reasoning=response.reasoning_text)
        content = [reasoning, ContentText(text=response.text)]
    message = ChatMessageAssistant(content=content, source="generate", model=model)
    stop_reason = STOP_REASONS.get(response.finish_reason or "other", "unknown")
    choice = ChatCompletionChoice(message=message, stop_reason=stop_reason)
    return ModelOutput(
        model=model,
        choices=[] if is_empty else [choice],
        completion=response.text,
        usage=_model_usage(response.usage),
        time=response.latency,
    )


def _model_usage(usage: Usage) -> ModelUsage | None:
    """Return the token counts; None if one is unknown, which Inspect cannot represent.

    The sample's metadata contains the known counts.
    """
    from inspect_ai.model import ModelUsage

    if usage.input is None or usage.generated is None:
        return None
    return ModelUsage(
        input_tokens=usage.input,
        output_tokens=usage.generated,
        total_tokens=usage.input + usage.generated,
        reasoning_tokens=usage.reasoning,
    )


def _spec(run: ScoredRun, rows: Sequence[ScoredItem], complete: bool) -> EvalSpec:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.model import GenerateConfig

    from numbench.ecosystem.inspect_task import BY_TASK_METRIC

    # Its name without who answered, which the answers tell.
    info, source = read_info(run.path), run.dataset
    # Exporting the run again writes the same file.
    identity = hashlib.sha256(msgspec.json.encode(info)).hexdigest()[:22]
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
    known = {key: info.settings.get(key) for key in ("temperature", "max_tokens", "seed")}
    return EvalSpec(
        eval_id=identity,
        run_id=identity,
        task_id=identity,
        created=utc_time(info.created) or _UNKNOWN_CREATED,
        task=f"numbench/{source.name}",
        task_version=source.label,
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
        model_generate_config=GenerateConfig(
            **{key: value for key, value in known.items() if isinstance(value, int | float)}
        ),
        config=EvalConfig(epochs=info.samples, fail_on_error=False),
        packages=info.versions,
        scorers=[{"name": name, "metrics": [{"name": BY_TASK_METRIC}]} for name in METRIC_NAMES],
        metadata={
            "run": msgspec.to_builtins(info),
            "signatures": {task: signature(run, task) for task in run.rows},
            "messages_complete": complete,
        },
    )
