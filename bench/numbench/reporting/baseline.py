"""One side of a comparison: a run, or a baseline, the file with the scores of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from numbench.core import jsonl
from numbench.dataset.store import Dataset
from numbench.errors import BadInput
from numbench.records import SCHEMA, ProtocolName, RunInfo, Schema
from numbench.reporting.regression import ComparedRun, compared_run, run_folder
from numbench.reporting.values import RunValues, run_values, task_values
from numbench.scoring import ScoredRun, score_dataset_run, signature


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of a run, to compare later runs with: a file of `numbench export --to baseline`.

    path: of the run. scores: task → score in percent per question, in the order of the run's
    questions; null without an answer.
    """

    path: str
    info: RunInfo
    dataset: str
    protocol: ProtocolName
    signatures: dict[str, str]
    scores: dict[str, tuple[Annotated[float, msgspec.Meta(ge=0, le=100)] | None, ...]]
    schema: Schema = SCHEMA


class AskedItems(NamedTuple):
    """The ids of a task's items in a run, and of those that have an answer to any sample."""

    asked: set[str]
    answered: set[str]


class Side(NamedTuple):
    """A run or a baseline, as far as a comparison needs it."""

    run: ComparedRun
    info: RunInfo
    sha256: str
    values: RunValues
    items: dict[str, AskedItems]


def write_baseline(run: Path, file: Path, protocol: ProtocolName = "exact") -> None:
    """Write the scores of a run to a file that `compare` takes in place of the run.

    An earlier baseline is replaced. Raises BadInput if `file` is anything else.
    """
    if file.exists():
        try:
            jsonl.read_json(file, Baseline)
        except BadInput as error:
            raise BadInput(f"--out {file} exists and is not a baseline: name a new file") from error
    scored = score_dataset_run(run_folder(run), protocol)
    side = side_of(scored)
    scores: dict[str, tuple[float | None, ...]] = {}
    for task, values in side.values.tasks.items():
        items = scored.dataset.by_task[task]
        known = dict(zip(values.index.tolist(), values.score.tolist(), strict=True))
        included = set(side.items[task].asked)
        scores[task] = tuple(known.get(i) for i, item in enumerate(items) if item.id in included)
    # The path of the dataset is one of this machine.
    reference = msgspec.structs.replace(scored.info.dataset, path=scored.info.dataset.name)
    info = msgspec.structs.replace(scored.info, dataset=reference)
    baseline = Baseline(
        path=scored.path.name, info=info, dataset=side.run.dataset, protocol=protocol,
        signatures=dict(side.run.signatures), scores=scores,
    )  # fmt: skip
    jsonl.write_atomically(file, msgspec.json.encode(baseline) + b"\n")


def read_baseline(file: Path, protocol: ProtocolName, dataset: Dataset) -> Side:
    baseline = jsonl.read_json(file, Baseline)
    info, sha256 = baseline.info, baseline.info.dataset.sha256
    if baseline.protocol != protocol:
        raise BadInput(f"{file} has scores of the protocol {baseline.protocol}, not {protocol}")
    run = compared_run(file, info, baseline.dataset, baseline.signatures)
    if sha256 != dataset.manifest.sha256:
        return Side(run, info, sha256, RunValues(sha256, {}), {})
    values, items = {}, {}
    for task, scores in baseline.scores.items():
        if task not in dataset.by_task:
            raise BadInput(f"{file}: dataset {baseline.dataset} has no task {task!r}")
        asked = [item.id for item in info.select_items(dataset.by_task[task])]
        if len(asked) != len(scores):
            raise BadInput(f"{file}: {len(scores)} scores of {task}, not {len(asked)}")
        known = {
            item_id: score
            for item_id, score in zip(asked, scores, strict=True)
            if score is not None
        }
        values[task] = task_values(dataset, task, list(known), {"score": list(known.values())})
        items[task] = AskedItems(set(asked), set(known))
    return Side(run, info, sha256, RunValues(sha256, values), items)


def side_of(run: ScoredRun) -> Side:
    items = {
        task: AskedItems(
            {row.item.id for row in rows}, {row.item.id for row in rows if row.is_answered}
        )
        for task, rows in run.rows.items()
    }
    sha256 = run.dataset.manifest.sha256
    signatures = {task: signature(run, task) for task in run.rows}
    known = compared_run(run.path, run.info, f"{run.dataset.name}@{sha256[:6]}", signatures)
    return Side(known, run.info, sha256, run_values(run), items)
