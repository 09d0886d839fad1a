"""Effects of prompts and transformations for a terminal: the means over the tasks, one per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from numbench.reporting.comparison_tables import format_p_value
from numbench.reporting.comparisons import OVERALL
from numbench.reporting.metamorphic import MetamorphicResult
from numbench.reporting.prompt_effects import PromptEffect, format_effect
from numbench.reporting.table_model import format_value
from numbench.stats.paired import Difference

_MAX_MODEL_WIDTH = 18


class VariantSummary(NamedTuple):
    """What a prompt set or a transformation changes, over the tasks (or on the only one).

    variant: name of the prompt set or transformation. result: score minus that of the reference.
    p: after Holm's correction. consistency: in percent, None for prompts.
    """

    model: str
    reasoning: str
    variant: str
    result: Difference
    p: float | None
    consistency: float | None


def summarize_variants(
    names: Sequence[tuple[str, str, str]],
    prompts: Sequence[PromptEffect],
    forms: Sequence[MetamorphicResult],
) -> tuple[VariantSummary, ...]:
    """Return the effects on the mean of tasks, or on the only task of a run.

    names: model, level and prompt set of each run.
    """
    tasks: dict[int, set[str]] = {}
    for run, task in [(e.run, e.task) for e in prompts] + [(f.run, f.task) for f in forms]:
        tasks.setdefault(run, set()).add(task)
    summaries = []
    for effect in prompts:
        if effect.result and _is_summary(effect.task, tasks[effect.run]):
            summaries.append(VariantSummary(*names[effect.run], effect.result, effect.p, None))
    for form in forms:
        if form.loss and _is_summary(form.task, tasks[form.run]):
            model, reasoning, _ = names[form.run]
            share = form.consistency.value if form.consistency else None
            summaries.append(
                VariantSummary(model, reasoning, form.transform, form.loss, form.p, share)
            )
    return tuple(summaries)


def _is_summary(task: str, tasks: set[str]) -> bool:
    return task == OVERALL or tasks == {task}


def variant_table(summaries: Sequence[VariantSummary]) -> Table:
    """Return a row per prompt set or transformation. Fits 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("Model", max_width=_MAX_MODEL_WIDTH, no_wrap=True, overflow="ellipsis")
    table.add_column("Level", max_width=8, no_wrap=True, overflow="ellipsis")
    table.add_column("Variant", max_width=14, no_wrap=True, overflow="ellipsis")
    for name in ("Consistent", "Difference", "Holm p"):
        table.add_column(name, justify="right", no_wrap=True)
    for summary in summaries:
        consistency = format_value(summary.consistency, 1)
        table.add_row(
            Text(summary.model),
            Text(summary.reasoning),
            Text(summary.variant),
            f"{consistency} %" if consistency else "",
            Text(format_effect(summary.result)),
            format_p_value(summary.p),
        )
    return table
