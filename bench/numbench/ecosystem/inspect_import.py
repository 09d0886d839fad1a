"""Logs of Inspect as runs: those that numbench exported, and those of its task in Inspect."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from numbench._version import __version__
from numbench.dataset.store import Dataset, open_dataset
from numbench.ecosystem.export import require_extra
from numbench.ecosystem.inspect_log import INSPECT_TASK_NAME
from numbench.errors import BadInput, bad_input_at
from numbench.journal.identity import EXAMPLE_HASHES
from numbench.journal.run_folder import write_run
from numbench.records import PAPER, Failure, PromptRef, Response, RunInfo, Usage
from numbench.runner.few_shot import examples, examples_sha256
from numbench.tasks.prompts import load_prompt_set

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ModelOutput, ModelUsage

T = TypeVar("T")


def import_logs(paths: Sequence[Path], out: Path, dataset: str | None = None) -> list[Path]:
    """Import the logs at or below `paths`; return the run folders written below `out`.

    A repeated import writes the same bytes. dataset: name or folder of the questions; the logs of
    other questions are on the dataset that they name. Raises BadInput before anything is written if
    a log cannot be imported.
    """
    require_extra("inspect_ai", "inspect")
    logs: dict[Path, Path] = {}
    runs: dict[Path, tuple[RunInfo, list[Response]]] = {}
    for log in [log for path in paths for log in _find_logs(path)]:
        folder = out / log.stem
        runs[folder] = _read_log(log, folder, dataset)
        if (other := logs.setdefault(folder, log)) != log:
            raise BadInput(f"{log} and {other} would be the same run folder: rename one file")
    for folder, (info, responses) in runs.items():
        write_run(folder, info, responses)
    return list(runs)


def _find_logs(path: Path) -> list[Path]:
    """Return the logs at or below `path`, sorted by name. Raises BadInput if there are none."""

    files = [file for file in path.rglob("*") if file.suffix in (".eval", ".json")]
    logs = [path] if path.is_file() else sorted(filter(_is_log, files))
    if not logs:
        raise BadInput(f"{path}: no Inspect log here")
    return logs


def _is_log(file: Path) -> bool:
    """Return whether a file of a folder is a log; `inspect eval-set` writes other JSON there."""
    if file.suffix == ".eval":
        return True
    try:
        content = msgspec.json.decode(file.read_bytes(), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return content.keys() >= {"version", "eval"}


def _read_log(path: Path, folder: Path, dataset: str | None) -> tuple[RunInfo, list[Response]]:
    """Return the run of an `.eval` or `.json` log, to be written to `folder`.

    Raises BadInput if the file is not a log of numbench's task, or if its questions are not those
    of the dataset.
    """
    from inspect_ai.log import read_eval_log

    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:
        raise BadInput(f"{path}: not a log that Inspect can read: {error}") from error
    if INSPECT_TASK_NAME not in (log.eval.task, log.eval.task_registry_name):
        raise BadInput(
            f"{path}: a log of the task {log.eval.task!r}; only {INSPECT_TASK_NAME} can be imported"
        )
    if not log.samples:
        raise BadInput(f"{path}: no samples in this log")
    metadata = log.eval.metadata or {}
    exported = metadata.get("run")
    if exported is None:
        name = str(log.eval.task_args.get("dataset", "v1"))
        source = _find_dataset(path, name, str(metadata.get("dataset_sha256") or ""), dataset)
        info = _rebuilt_info(log, source, folder)
    else:
        place = f"{path}: eval.metadata.run is not a run of numbench"
        info = _convert(place, exported, RunInfo)
        source = _find_dataset(path, info.dataset.name, info.dataset.sha256, dataset)
        info = msgspec.structs.replace(info, source="imported", dataset=source.ref(folder))
    responses = []
    # Inspect asks invalidated samples again: they are open questions of the run.
    for sample in (each for each in log.samples if each.invalidation is None):
        place = f"{path}, sample {sample.id}, epoch {sample.epoch}"
        _check_question(place, source, sample, any_text=bool(info.variant_label))
        responses.append(_response(sample) if exported is None else _own_response(place, sample))
    return info, responses


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
            reason = reason or f"{source.path} is {source.label}"
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
    return _convert(f"{place}: metadata.response", record | texts, Response)


def _convert(place: str, value: object, kind: type[T]) -> T:
    with bad_input_at(place, msgspec.ValidationError):
        return msgspec.convert(value, kind)


def _response(sample: EvalSample) -> Response:
    """Return the response of a sample that Inspect asked."""
    from numbench.ecosystem.inspect_task import finish_reason

    output, limit = sample.output, sample.limit.type if sample.limit else None
    failure = sample.error.message if sample.error else output.error
    if limit not in (None, "token") and not output.completion:
        failure = failure or f"Inspect ended the sample at its limit: {limit}"
    return Response(
        item_id=str(sample.id),
        sample=sample.epoch - 1,
        text=output.completion,
        reasoning_text=_reasoning_text(output),
        finish_reason="length" if limit == "token" else finish_reason(output),
        usage=_usage(output.usage, output.completion),
        latency=output.time,
        served_model=output.model or None,
        error=Failure(kind="item", message=failure) if failure else None,
        at=sample.completed_at,
    )


def _reasoning_text(output: ModelOutput) -> str | None:
    from inspect_ai.model import ContentReasoning

    if not output.choices or isinstance(output.message.content, str):
        return None
    parts = [part for part in output.message.content if isinstance(part, ContentReasoning)]
    # A redacted reasoning is encrypted.
    texts = (part.summary if part.redacted else part.reasoning for part in parts)
    return "\n".join(filter(None, texts)) or None


def _usage(usage: ModelUsage | None, text: str) -> Usage:
    """Return the token counts. In Inspect, output tokens include reasoning, except for Grok's.

    The input does not include cached tokens; it did in logs of 2025. The total shows both.
    """
    if usage is None or (text and not usage.output_tokens):
        return Usage()
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    generated, reasoning = usage.output_tokens, usage.reasoning_tokens
    rest = usage.total_tokens - usage.input_tokens - generated
    # Cached input explains as many tokens, unless the output is too small for the reasoning.
    is_cached = rest == cached and generated >= (reasoning or 0)
    if reasoning and not is_cached and rest in (reasoning, cached + reasoning):
        generated, rest = generated + reasoning, rest - reasoning
    includes_cached = rest == 0
    return Usage(
        input=usage.input_tokens + (0 if includes_cached else cached),
        reasoning=reasoning,
        visible=None if reasoning is None else max(0, generated - reasoning),
        generated=generated,
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
        settings |= {"few_shot": few_shot, EXAMPLE_HASHES: examples_sha256(shown)}
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
    numbers = [n for items in groups for n, item in enumerate(items, 1) if item.id in asked]
    last = max(numbers, default=0)
    return None if last >= max(map(len, groups)) else last
