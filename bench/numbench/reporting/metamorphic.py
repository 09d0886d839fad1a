"""Metamorphic tests: does a model give the same answer to the same question in another form?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numbench.records import Answer, Item
from numbench.reporting.comparison_tables import format_p_value, task_name
from numbench.reporting.comparisons import OVERALL, compare_runs
from numbench.reporting.entries import MeasuredRun
from numbench.reporting.prompt_effects import difference_json, format_effect, mean_difference
from numbench.reporting.run_variants import run_families
from numbench.reporting.sampling_design import stratum_of_items
from numbench.reporting.table_model import (
    LOG_SMAPE,
    Estimate,
    RowGroup,
    format_bounds,
    format_value,
)
from numbench.reporting.table_spec import TableContent, TableSpec
from numbench.scoring import ScoredItem, ScoredRun
from numbench.scoring.metrics import comparison_key
from numbench.scoring.scored_run import item_groups
from numbench.stats.design import Stratum
from numbench.stats.intervals import mean_intervals
from numbench.stats.multiple_testing import holm
from numbench.stats.paired import Difference
from numbench.transforms import Transform, find_transform, variant_of_run

if TYPE_CHECKING:
    from numbench.reporting.report_data import ReportData

METAMORPHIC_CAPTION = (
    "Items in another form (--transform) beside the items as they are, paired by item; items "
    "that a transformation leaves as they are do not count. Consistent: both answers agree, after "
    "the known relation between them, whether they are right or wrong; items without a readable "
    "answer in both runs are left out. Repeated: the same share for two samples of the same "
    "question, if the plain run has several; consistency cannot be expected to exceed it. "
    "Difference: score in the other form minus score as they are, in points with 95 % bounds. "
    "Lost, gained: items that are right only as they are, and only in the other form. p: paired "
    "test with Holm's correction over the transformations and tasks of the model and level."
)
METAMORPHIC_HEADER = (
    "Model", "Reasoning", "Transformation", "Task", "n", "consistent", "repeated", "difference",
    "p", "lost", "gained", "unreadable",
)  # fmt: skip


class MetamorphicResult(NamedTuple):
    """A transformation on one task, or the mean over its tasks.

    run, reference: indices of the transformed run and of the plain one. n: changed items that both
    answered. consistency: percentage of consistent items; repeated: the same for two samples of
    the plain run; None if unknown. loss: transformed minus plain score; p: after Holm's correction.
    discordant: numbers of items that only the plain and only the transformed run has right; None
    for the mean and with several samples. unreadable: answers that only in the other form could
    not be read.
    """

    run: int
    reference: int
    transform: str
    task: str
    n: int
    consistency: Estimate | None
    repeated: float | None
    loss: Difference | None
    p: float | None = None
    discordant: tuple[int, int] | None = None
    unreadable: int = 0

    @property
    def is_significant(self) -> bool:
        """Whether the difference of scores is significant after the correction."""
        return self.loss is not None and self.p is not None and self.loss.is_significant(self.p)


class _Pair(NamedTuple):
    """The changed items of one task in both runs, and their consistency: 100, 0 or NaN."""

    items: list[Item]
    consistency: Stratum
    repeated: list[float]
    unreadable: int


def metamorphic_results(runs: Sequence[MeasuredRun]) -> list[MetamorphicResult]:
    """Return, per transformed run with a plain one, the mean over its tasks and each task."""
    scored = [run.scored for run in runs]
    results: list[MetamorphicResult] = []
    for family in run_families(scored, "transform"):
        found = [
            result._replace(run=index, reference=family.reference)
            for index in family.others
            for result in _compare_forms(scored[index], scored[family.reference])
        ]
        p_values = iter(holm([result.loss.p for result in found if result.loss]))
        results += [r._replace(p=next(p_values) if r.loss else None) for r in found]
    return results


def _compare_forms(transformed: ScoredRun, plain: ScoredRun) -> list[MetamorphicResult]:
    transform = variant_of_run(transformed.path, transformed.info).transform
    assert transform is not None
    changed = _changed_items(transformed, plain)
    first, second = (_with_items(run, changed) for run in (transformed, plain))
    pairs = {task: _pair(task, first, second, transform) for task in changed if changed[task]}
    if not pairs:
        return []
    contrasts = {
        c.task: c for c in compare_runs([first, second]).contrasts if c.table == LOG_SMAPE.name
    }
    results = []
    for task, pair in pairs.items():
        contrast = contrasts[task]
        discordant = contrast.discordant
        results.append(
            MetamorphicResult(
                0,
                0,
                transform.name,
                task,
                contrast.result.n if contrast.result else 0,
                _estimate([pair.consistency]),
                _mean(pair.repeated),
                contrast.result,
                discordant=discordant and (discordant[1], discordant[0]),
                unreadable=pair.unreadable,
            )
        )
    return [*_overall(first, second, transform, pairs, results), *results]


def _overall(
    first: ScoredRun,
    second: ScoredRun,
    transform: Transform,
    pairs: dict[str, _Pair],
    results: Sequence[MetamorphicResult],
) -> Iterator[MetamorphicResult]:
    """Yield the unweighted mean over the tasks, if there are several with common answers."""
    known = [result for result in results if result.loss is not None]
    if len(known) < 2:
        return
    repeated = [result.repeated for result in known if result.repeated is not None]
    yield MetamorphicResult(
        0,
        0,
        transform.name,
        OVERALL,
        sum(result.n for result in known),
        _estimate([pairs[result.task].consistency for result in known]),
        _mean(repeated) if len(repeated) == len(known) else None,
        mean_difference(first, second, [result.task for result in known]),
        unreadable=sum(result.unreadable for result in known),
    )


def _changed_items(transformed: ScoredRun, plain: ScoredRun) -> dict[str, set[str]]:
    """Return, per task of both runs, the ids of common items whose questions differ."""
    changed = {}
    for task in transformed.rows:
        if task in plain.rows:
            prompts = {row.item.id: row.item.prompt for row in plain.rows[task]}
            changed[task] = {
                row.item.id
                for row in transformed.rows[task]
                if row.item.id in prompts and row.item.prompt != prompts[row.item.id]
            }
    return changed


def _with_items(run: ScoredRun, items: dict[str, set[str]]) -> ScoredRun:
    rows = {
        task: [row for row in run.rows[task] if row.item.id in ids]
        for task, ids in items.items()
        if ids
    }
    return run._replace(rows=rows)


def _pair(task: str, first: ScoredRun, second: ScoredRun, transform: Transform) -> _Pair:
    plain = {group[0].item.id: group for group in item_groups(second.rows[task])}
    items, values, repeated, unreadable = [], [], [], 0
    for group in item_groups(first.rows[task]):
        others = plain[group[0].item.id]
        agreements = []
        for row, other in zip(group, others, strict=False):
            agreement = _agreement(row, other, transform)
            agreements += [] if agreement is None else [agreement]
            is_counted = row.is_answered and other.is_answered
            unreadable += is_counted and row.score.parsed is None and other.score.parsed is not None
        if len(others) > 1 and (agreement := _agreement(others[1], others[0], None)) is not None:
            repeated.append(agreement)
        items.append(others[0].item)
        values.append([float(np.mean(agreements)) if agreements else np.nan])
    return _Pair(
        items,
        stratum_of_items(first.dataset, task, items, np.array(values)),
        repeated,
        unreadable,
    )


def _agreement(row: ScoredItem, plain: ScoredItem, transform: Transform | None) -> float | None:
    """Return 100 if two answers agree, 0 if not; None if neither is readable or one is missing."""
    if not (row.is_answered and plain.is_answered):
        return None
    given, expected = row.score.parsed, plain.score.parsed
    if given is None and expected is None:
        return None
    if given is None or expected is None:
        return 0.0
    if transform is not None:
        expected = transform.map_answer(plain.item.task, plain.item.operator, expected)
    return 100.0 * _is_same(given, expected, row.item)


def _is_same(given: Answer, expected: Answer, item: Item) -> bool:
    """Return whether two answers to an item are equal, as numbers are compared with the truth."""
    if isinstance(given, str) != isinstance(expected, str) or given == expected:
        return given == expected
    if isinstance(given, str) and given.isalpha():
        return False
    key = comparison_key(item)
    numbers = [[given] if isinstance(given, str) else given]
    numbers.append([expected] if isinstance(expected, str) else expected)
    first, second = ([key(Decimal(number)) for number in each] for each in numbers)
    return first == second


def _estimate(strata: Sequence[Stratum]) -> Estimate | None:
    mean, low, high = (float(column[0]) for column in mean_intervals(strata))
    return None if np.isnan(mean) else Estimate(mean, low, high)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def metamorphic_rows(
    runs: Sequence[MeasuredRun], results: Sequence[MetamorphicResult]
) -> list[list[str]]:
    """Return one row per result, for `METAMORPHIC_HEADER`."""
    return [
        [
            runs[result.reference].entry.name,
            runs[result.reference].entry.reasoning,
            result.transform,
            task_name(result.task),
            str(result.n),
            format_consistency(result),
            format_value(result.repeated, 1),
            format_effect(result.loss),
            format_p_value(result.p),
            *(map(str, result.discordant) if result.discordant else ("", "")),
            str(result.unreadable),
        ]
        for result in results
    ]


def describe_forms(results: Sequence[MetamorphicResult]) -> str:
    """Return what the transformations of the results do."""
    names = dict.fromkeys(result.transform for result in results)
    return "; ".join(f"{name}: {find_transform(name).description}" for name in names) + "."


def metamorphic_json(
    runs: Sequence[MeasuredRun], results: Sequence[MetamorphicResult]
) -> list[dict[str, object]]:
    """Return `metamorphic` of `report.json`."""
    return [
        {
            "run": runs[result.run].scored.path.as_posix(),
            "reference": runs[result.reference].scored.path.as_posix(),
            "transform": result.transform,
            "task": result.task,
            "consistency": result.consistency and result.consistency._asdict(),
            "repeated": result.repeated,
            **difference_json(result.loss, result.p),
            "lost": result.discordant and result.discordant[0],
            "gained": result.discordant and result.discordant[1],
            "unreadable": result.unreadable,
        }
        for result in results
    ]


def format_consistency(result: MetamorphicResult) -> str:
    """Return `98.4 [97.0, 99.2]`, empty if it is unknown."""
    if result.consistency is None:
        return ""
    bounds = format_bounds(LOG_SMAPE, result.consistency)
    return f"{format_value(result.consistency.value, 1)} {bounds}"


def _metamorphic(data: ReportData) -> TableContent | None:
    if not data.metamorphic_results:
        return None
    rows = metamorphic_rows(data.runs, data.metamorphic_results)
    return TableContent(
        METAMORPHIC_HEADER,
        [RowGroup(data.heading, rows)],
        text_columns=4,
        notes=[describe_forms(data.metamorphic_results)],
    )


TABLES = (
    TableSpec(
        "metamorphic",
        "Same question, another form",
        METAMORPHIC_CAPTION,
        _metamorphic,
    ),
)
