"""Runs as logs of Inspect, and logs of Inspect as runs.

An exported log is for `inspect view` and Inspect's analysis functions. Its metadata contain the
records of the run and of each response, so that its import loses nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from numbench._version import __version__
from numbench.dataset.store import Dataset, open_dataset
from numbench.ecosystem.exported_items import METRIC_NAMES, dataset_version, require_extra
from numbench.errors import BadInput, NumbenchError
from numbench.journal import find_runs, write_run
from numbench.models.base import Message
from numbench.records import PAPER, Failure, PromptRef, Response, RunInfo, Usage
from numbench.runner.few_shot import examples, examples_sha256, messages_before
from numbench.scoring import ScoredItem, ScoredRun, score_run, signature
from numbench.scoring.scored_run import few_shot_count
from numbench.tasks.prompts import changed_prompts, load_prompt_set
from numbench.transforms import variant_of_run

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalSpec
    from inspect_ai.model import ModelOutput, ModelUsage

_TASK = "numbench/v1"

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
        path = out / f"{created}_{_TASK.replace('/', '-')}_{log.eval.task_id}.eval"
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
    known = [usage for usage in usages if usage is not None]
    is_known = bool(known) and len(known) == len(usages)
    log = EvalLog(
        status="success" if len(samples) == len(rows) else "cancelled",
        eval=_spec(run, rows, complete=bool(prefixes)),
        stats=EvalStats(
            model_usage={run.info.model: sum(known, start=ModelUsage())} if is_known else {}
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
        messages=[*sample.input, *(choice.message for choice in output.choices)],
        output=output,
        scores=scores,
        error=error,
        model_usage={info.model: output.usage} if output.usage else {},
        completed_at=_iso_time(response.at or "") or None,
        total_time=response.latency,
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
    if response.error is not None and not (response.text or response.reasoning_text):
        return ModelOutput(model=model, time=response.latency)
    content: object = response.text
    if response.reasoning_text:
        reasoning = ContentReasoning(reasoning=response.reasoning_text)
        content = [reasoning, ContentText(text=response.text)]
    message = ChatMessageAssistant(content=content, source="generate", model=model)
    stop_reason = STOP_REASONS.get(response.finish_reason or "other", "unknown")
    return ModelOutput(
        model=model,
        choices=[ChatCompletionChoice(message=message, stop_reason=stop_reason)],
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

    info, source = run.info, run.dataset
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
        created=_iso_time(info.created) or _UNKNOWN_CREATED,
        task=_TASK,
        task_version=dataset_version(source),
        task_registry_name=_TASK,
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


def _iso_time(text: str) -> str:
    """Return a time of a run in ISO 8601, by default in UTC; empty if it is unknown.

    Raises NumbenchError if it is not a time.
    """
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError as error:
        raise NumbenchError(f"invalid time {text!r} in the run: expected ISO 8601") from error
    return "" if time is None else (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


class _LoggedRun(NamedTuple):
    """A run as read from a log. expected: the number of samples that it asks."""

    log: Path
    folder: Path
    info: RunInfo
    responses: list[Response]
    expected: int


def import_logs(
    paths: Sequence[Path],
    out: Path,
    dataset: str | None = None,
    on_message: Callable[[str], None] | None = None,
) -> list[Path]:
    """Import the logs at or below `paths`; return the run folders written below `out`.

    A repeated import writes the same bytes. dataset: name or folder of the questions; the logs of
    other questions are on the dataset that they name. on_message: receives a note for every run
    that is not complete. Raises BadInput before anything is written if a log cannot be imported.
    """
    require_extra("inspect_ai", "inspect")
    runs: dict[Path, _LoggedRun] = {}
    for log in [log for path in paths for log in _find_logs(path)]:
        run = _read_log(log, out / log.stem, dataset)
        if (other := runs.setdefault(run.folder, run)).log != log:
            raise BadInput(f"{log} and {other.log} would be the same run folder: rename one file")
    for run in runs.values():
        write_run(run.folder, run.info, run.responses)
        if on_message and len(run.responses) < run.expected:
            on_message(
                f"{run.log}: {len(run.responses):,} of {run.expected:,} answers; "
                "the rest is missing"
            )
    return list(runs)


def _find_logs(path: Path) -> list[Path]:
    """Return the logs at or below `path`, sorted by name. Raises BadInput if there are none."""

    def is_log(file: Path) -> bool:
        with file.open("rb") as opened:
            return file.suffix == ".eval" or b'"eval"' in opened.read(4096)

    files = [file for file in path.rglob("*") if file.suffix in (".eval", ".json")]
    logs = [path] if path.is_file() else sorted(filter(is_log, files))
    if not logs:
        raise BadInput(f"{path}: no log of Inspect here")
    return logs


def _read_log(path: Path, folder: Path, dataset: str | None) -> _LoggedRun:
    """Return the run of an `.eval` or `.json` log, to be written to `folder`.

    Raises BadInput if the file is not a log of numbench's task, or if its questions are not those
    of the dataset.
    """
    from inspect_ai.log import read_eval_log

    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:
        raise BadInput(f"{path}: not a log that Inspect can read: {error}") from error
    if _TASK not in (log.eval.task, log.eval.task_registry_name):
        raise BadInput(f"{path}: a log of the task {log.eval.task!r}; only {_TASK} can be imported")
    if not log.samples:
        raise BadInput(f"{path}: no samples in this log")
    metadata = log.eval.metadata or {}
    exported = metadata.get("run")
    if exported is None:
        name = str(log.eval.task_args.get("dataset", "v1"))
        source = _find_dataset(path, name, str(metadata.get("dataset_sha256") or ""), dataset)
        info = _rebuilt_info(log, source, folder)
    else:
        try:
            info = msgspec.convert(exported, RunInfo)
        except msgspec.ValidationError as error:
            raise BadInput(
                f"{path}: eval.metadata.run is not a run of numbench: {error}"
            ) from error
        source = _find_dataset(path, info.dataset.name, info.dataset.sha256, dataset)
        info = msgspec.structs.replace(info, source="imported", dataset=source.ref(folder))
    responses = []
    for sample in log.samples:
        place = f"{path}, sample {sample.id}, epoch {sample.epoch}"
        _check_question(place, source, sample, any_text=bool(info.transform))
        responses.append(_response(sample) if exported is None else _own_response(place, sample))
    items = sum(len(info.select_items(source.by_task[task])) for task in info.tasks)
    return _LoggedRun(path, folder, info, responses, info.samples * items)


def _find_dataset(path: Path, name: str, sha256: str, override: str | None) -> Dataset:
    """Return the dataset of a log: `override` if it has the hash, else the one of that name.

    sha256: the start of the hash. Raises BadInput if there is none, or if it has another hash.
    """
    own, reason = f"{name}@{sha256[:6]}", ""
    for candidate in (override, name):
        try:
            source = open_dataset(candidate) if candidate else None
        except BadInput as error:
            reason = reason or str(error)
            continue
        if source and source.manifest.sha256.startswith(sha256):
            return source
        if source:
            reason = reason or f"{source.path} is {dataset_version(source)}"
    raise BadInput(
        f"{path}: its questions are of the dataset {own}, but {reason}; import this log by itself "
        "and name the folder of its dataset with --dataset"
    )


def _check_question(place: str, source: Dataset, sample: EvalSample, any_text: bool) -> None:
    """Raise BadInput if the dataset has no such item, or another question.

    any_text: whether the question was asked in another form.
    """
    item = source.by_id.get(str(sample.id))
    if item is None:
        raise BadInput(f"{place}: no item {sample.id!r} in the dataset {source.path}")
    messages = sample.input
    prompt = messages if isinstance(messages, str) else messages[-1].text if messages else None
    if prompt not in (None, item.prompt) and not any_text:
        raise BadInput(
            f"{place}: the question of {item.id} is {prompt[:60]!r}, but {item.prompt[:60]!r} in "
            f"the dataset {source.path}"
        )


def _own_response(place: str, sample: EvalSample) -> Response:
    """Return the record of a response that numbench exported, with the texts of the sample."""
    record = (sample.metadata or {}).get("response")
    if not isinstance(record, dict):
        raise BadInput(f"{place}: metadata.response, the record of the response, is missing")
    texts = {"text": sample.output.completion, "reasoning_text": _reasoning_text(sample.output)}
    try:
        return msgspec.convert(record | texts, Response)
    except msgspec.ValidationError as error:
        raise BadInput(f"{place}: metadata.response: {error}") from error


def _response(sample: EvalSample) -> Response:
    """Return the response of a sample that Inspect asked."""
    from numbench.ecosystem.inspect_task import finish_reason

    output = sample.output
    is_limited = sample.limit is not None and sample.limit.type == "token"
    return Response(
        item_id=str(sample.id),
        sample=sample.epoch - 1,
        text=output.completion,
        reasoning_text=_reasoning_text(output),
        finish_reason="length" if is_limited else finish_reason(output),
        usage=_usage(output.usage, output.completion),
        latency=output.time,
        served_model=output.model or None,
        error=Failure(kind="item", message=sample.error.message) if sample.error else None,
        at=sample.completed_at,
    )


def _reasoning_text(output: ModelOutput) -> str | None:
    from inspect_ai.model import ContentReasoning

    if not output.choices or isinstance(output.message.content, str):
        return None
    parts = [part for part in output.message.content if isinstance(part, ContentReasoning)]
    return "\n".join(part.reasoning for part in parts) or None


def _usage(usage: ModelUsage | None, text: str) -> Usage:
    """Return the token counts. In Inspect, output tokens include reasoning."""
    if usage is None or (text and not usage.output_tokens):
        return Usage()
    parts = (usage.input_tokens, usage.input_tokens_cache_read, usage.input_tokens_cache_write)
    reasoning = usage.reasoning_tokens
    return Usage(
        input=sum(part or 0 for part in parts),
        reasoning=reasoning,
        visible=None if reasoning is None else max(0, usage.output_tokens - reasoning),
        generated=usage.output_tokens,
        source="reported",
    )


def _rebuilt_info(log: EvalLog, source: Dataset, folder: Path) -> RunInfo:
    """Return the description of a run that Inspect made; what its log does not tell is unknown."""
    asked = {str(i) for i in log.eval.dataset.sample_ids or [one.id for one in log.samples or []]}
    tasks = tuple(task for task in source.tasks if any(i.id in asked for i in source.by_task[task]))
    prompts = load_prompt_set().ref(tasks)
    prompt_sha256 = str((log.eval.metadata or {}).get("prompt_sha256") or prompts.sha256)
    if prompt_sha256 != prompts.sha256:
        prompts = PromptRef(name=PAPER, sha256=prompt_sha256)
    config = log.eval.model_generate_config.model_dump(exclude_none=True)
    config = log.plan.config.model_dump(exclude_none=True) | config
    settings: dict[str, object] = {
        key: v for key, v in config.items() if isinstance(v, str | int | float)
    }
    if (samples := log.eval.config.epochs or 1) > 1:
        settings["samples"] = samples
    if few_shot := int(log.eval.task_args.get("few_shot") or 0):
        shown = examples(source, tasks, few_shot)
        settings |= {"few_shot": few_shot, "few_shot_sha256": examples_sha256(shown)}
    tokens = config.get("reasoning_tokens")
    level = "default" if tokens is None else f"{tokens} tokens"
    return RunInfo(
        model=log.eval.model,
        display=log.eval.model,
        reasoning=str(config.get("reasoning_effort", level)),
        dataset=source.ref(folder),
        prompt=prompts,
        tasks=tasks,
        limit=_limit(source, tasks, asked),
        settings=settings,
        versions={"numbench": __version__, **log.eval.packages},
        created=log.eval.created,
        source="imported",
    )


def _limit(source: Dataset, tasks: Sequence[str], asked: Collection[str]) -> int | None:
    """Return the smallest limit per task that includes all asked items; None: all items."""
    groups = [source.by_task[task] for task in tasks]
    last = max((n for items in groups for n, item in enumerate(items, 1) if item.id in asked),
               default=0)  # fmt: skip
    return None if last >= max(map(len, groups)) else last
