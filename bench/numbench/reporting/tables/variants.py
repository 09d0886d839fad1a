"""Other wordings and notations: what a different question of equal meaning changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Literal

import numpy as np

from numbench.journal.identity import EXAMPLE_HASHES
from numbench.records import PAPER, Answer, Estimate, Item, RunInfo
from numbench.reporting.comparisons import ALL, PairDifference, compare_runs
from numbench.reporting.data import ReportData, score_estimate
from numbench.reporting.names import one_line
from numbench.reporting.tables.model import (
    Cell,
    Row,
    declared_table,
    table_rows,
    task_row,
)
from numbench.reporting.values import row_stratum
from numbench.scoring import ScoredItem, ScoredRows, ScoredRun
from numbench.scoring.metrics import comparison_key
from numbench.scoring.scored_run import counted_rows
from numbench.stats.design import Stratum
from numbench.stats.multiple_testing import holm
from numbench.tasks import TASKS
from numbench.transforms import Transform, find_transform, variant_of_run

_Kind = Literal["wording", "notation"]

# They differ between runs that otherwise ask the same; the hash of the examples also covers their
# wording.
_NOT_COMPARED = ("samples", "stream", "background", EXAMPLE_HASHES)


def _rows(data: ReportData) -> Iterator[Row]:
    """Yield the effects of wordings, then those of notations."""
    comparisons: dict[_Kind, Callable[[ReportData, int, int], Iterator[Row]]] = {
        "wording": _compare_wordings, "notation": _compare_notations,
    }  # fmt: skip
    for kind, compare in comparisons.items():
        for reference, others in _families(data, kind):
            effects = [row for run in others for row in compare(data, run, reference)]
            # Holm's correction is over the effects of one model and level.
            adjusted = holm([row.cells["p"] for row in effects])  # type: ignore[misc]
            for row, p in zip(effects, adjusted, strict=True):
                yield row._replace(cells={**row.cells, "p": p})


def _families(data: ReportData, kind: _Kind) -> list[tuple[int, list[int]]]:
    """Return runs that differ only in wording or notation: the reference, and the others.

    Without the paper's wording, the first run is the reference; a family of notations needs a run
    on the questions as they are.
    """
    infos = [data.runs[index].scored.info for index in range(len(data.runs))]
    groups: dict[str, list[int]] = {}
    for index, info in enumerate(infos):
        groups.setdefault(_identity(info, kind), []).append(index)
    families = []
    for members in groups.values():
        plain = [index for index in members if _name(infos[index], kind) in (PAPER, None)]
        if kind == "notation" and not plain:
            continue
        reference = (plain or members)[0]
        same = _name(infos[reference], kind)
        if others := [index for index in members if _name(infos[index], kind) != same]:
            families.append((reference, others))
    return families


def _identity(info: RunInfo, kind: _Kind) -> str:
    """Return everything that shapes an answer except the wording or notation."""
    settings = {key: info.settings[key] for key in info.settings if key not in _NOT_COMPARED}
    fixed = _name(info, "notation" if kind == "wording" else "wording")
    parts = [info.source, info.model, info.display, info.reasoning, info.dataset.sha256]
    return json.dumps([*parts, settings, fixed], sort_keys=True, default=str)


def _name(info: RunInfo, kind: _Kind) -> str | None:
    return info.prompt.label if kind == "wording" else info.transform


def _effect(
    data: ReportData,
    run: int,
    reference: int,
    known: PairDifference,
    tasks: int,
    variant: str,
    consistent: Estimate | None = None,
) -> Row:
    """Return the score with the variant minus the score without, with the p-value of one test."""
    cells: dict[str, Cell] = {
        "model": data.runs[run].model,
        "reference": data.runs[reference].label,
        "variant": one_line(variant),
        "questions": known.items,
        "difference": Estimate(known.difference, known.low, known.high),
        "p": known.p,
        "consistent": consistent,
    }
    return task_row(data, run, known.task, cells, tasks)


def _compare_wordings(data: ReportData, run: int, reference: int) -> Iterator[Row]:
    """Yield the effects of a wording."""
    for task in (ALL, *data.tasks):
        known = data.difference(data.runs[run], data.runs[reference], task)
        if known is not None and known.task == task:
            name = data.runs[run].scored.info.prompt.name
            yield _effect(data, run, reference, known, data.common_tasks(known), name)


def _compare_notations(data: ReportData, run: int, reference: int) -> Iterator[Row]:
    """Yield the effects of a notation on the questions that it changes."""
    transformed, plain = data.runs[run].scored, data.runs[reference].scored
    transform = variant_of_run(transformed.path, transformed.info).transform
    assert transform is not None
    first, second = _changed_items(transformed, plain), _changed_items(plain, transformed)
    agreement = {task: _consistency(task, first, second, transform) for task in first.rows}
    comparisons = compare_runs([first, second])
    tasks = [task for task in TASKS if task in agreement and comparisons.of(0, 1, task)]
    for task in ([ALL] if len(tasks) > 1 else []) + tasks:
        known = comparisons.of(0, 1, task)
        if known is not None:
            chosen = [agreement[each] for each in (tasks if task == ALL else [task])]
            name, consistent = transformed.info.transform or "", score_estimate(chosen)
            yield _effect(data, run, reference, known, len(tasks), name, consistent)


def _changed_items(run: ScoredRun, other: ScoredRun) -> ScoredRun:
    """Return a run with the questions that the other run asks differently."""
    changed: dict[str, ScoredRows] = {}
    for task, rows in run.rows.items():
        prompts = {row.item.id: row.item.prompt for row in other.rows.get(task, ())}
        known = ((row.item.prompt, prompts.get(row.item.id, row.item.prompt)) for row in rows)
        mask = np.array([prompt != theirs for prompt, theirs in known], dtype=np.bool_)
        changed |= {task: rows.select(mask)} if mask.any() else {}
    return run._replace(rows=changed)


def _consistency(task: str, first: ScoredRun, second: ScoredRun, transform: Transform) -> Stratum:
    """Return 100 for each question on which two runs agree, and 0 where they do not."""
    plain = {(row.item.id, row.sample): row for row in second.rows[task]}
    rows = counted_rows(first, task)
    values = [
        _agreement(first, row, plain.get((row.item.id, row.sample)), transform) for row in rows
    ]
    return row_stratum(first, task, rows, np.array(values, dtype=np.float64))


def _agreement(
    run: ScoredRun, row: ScoredItem, plain: ScoredItem | None, transform: Transform
) -> float | None:
    """Return 100 if two answers agree, 0 if not; None if neither is readable or one is missing."""
    if plain is None or not (row.is_answered and plain.is_answered):
        return None
    given, expected = row.score.parsed, plain.score.parsed
    if given is expected is None:
        return None
    if given is None or expected is None:
        return 0.0
    expected = transform.map_answer(plain.item.task, plain.item.operator, expected)
    if given == expected:
        return 100.0
    if isinstance(given, str) != isinstance(expected, str):
        return 0.0
    return 100.0 * (_answer_value(run, row.item, given) == _answer_value(run, row.item, expected))


def _answer_value(run: ScoredRun, item: Item, answer: Answer) -> object:
    """Return a value that is equal for answers that are compared with the truth alike."""
    if run.protocol == "paper" or TASKS[item.task].answer_kind == "letter":
        return answer
    key = comparison_key(item)
    try:
        if isinstance(answer, str):
            return key(Decimal(answer))
        return tuple(key(Decimal(number)) for number in answer)
    except InvalidOperation:
        return answer


def _notes(data: ReportData) -> list[str]:
    """Say what the wordings are for, and what the notations are."""
    described: dict[str, str] = {}
    for row in table_rows(TABLE, data):
        if row.run is not None:
            scored, name = data.runs[row.run].scored, str(row.cells["variant"])
            variant = variant_of_run(scored.path, scored.info)
            if name == one_line(scored.info.transform or ""):
                described[name] = find_transform(scored.info.transform or "").description
            elif text := variant.prompts.options.description:
                described[name] = text
    return [f"{name}: {one_line(text)}" for name, text in described.items()]


TABLE = declared_table("variants", _rows, _notes)
