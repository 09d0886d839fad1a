"""Runs that differ only in their prompts, or only in the transformation of their items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from numbench.records import PAPER, RunInfo
from numbench.scoring import ScoredRun

VariedField = Literal["prompts", "transform"]

# They differ between runs that otherwise ask the same; the hash of the examples also covers their
# wording.
_NOT_COMPARED = ("samples", "stream", "background", "few_shot_sha256")


class RunFamily(NamedTuple):
    """Runs, by index, that differ in one field only.

    reference: the run with the paper's prompts, or with the items as they are. others: the rest.
    """

    reference: int
    others: tuple[int, ...]


def run_families(runs: Sequence[ScoredRun], varied: VariedField) -> list[RunFamily]:
    """Return the families of runs that differ in `varied`, each of at least two runs.

    Without the paper's prompts, the first run is the reference; a family needs a run on the items
    as they are. Of several runs that could be the reference, the first one is.
    """
    groups: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault(_identity(run.info, varied), []).append(index)
    families = []
    for members in groups.values():
        is_reference = [_is_reference(runs[index].info, varied) for index in members]
        if varied == "transform" and not any(is_reference):
            continue
        reference = members[is_reference.index(True) if any(is_reference) else 0]
        same = _value(runs[reference].info, varied)
        others = tuple(i for i in members if _value(runs[i].info, varied) != same)
        if others:
            families.append(RunFamily(reference, others))
    return families


def _identity(info: RunInfo, varied: VariedField) -> str:
    """Return everything that shapes an answer except the varied field."""
    settings = {key: info.settings[key] for key in info.settings if key not in _NOT_COMPARED}
    fixed = _value(info, "transform" if varied == "prompts" else "prompts")
    parts = [info.source, info.model, info.display, info.reasoning, info.dataset.sha256]
    return json.dumps([*parts, settings, fixed], sort_keys=True, default=str)


def _is_reference(info: RunInfo, varied: VariedField) -> bool:
    return info.prompt.name == PAPER if varied == "prompts" else info.transform is None


def _value(info: RunInfo, varied: VariedField) -> str | None:
    return info.prompt.label if varied == "prompts" else info.transform
