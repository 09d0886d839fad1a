"""What a horizon measurement may ask: the sizes that fit the model, and the record of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from numbench.errors import BadInput
from numbench.horizon import DESIGN_VERSION
from numbench.horizon.items import (
    DATASET_NAME,
    SEQUENCES_VERSION,
    AskedItems,
    ItemAddress,
    ItemSequences,
)
from numbench.horizon.sizes import answer_tokens, prompt_tokens, task_sizes
from numbench.models import ModelDescription, RequestSettings
from numbench.records import HorizonInfo
from numbench.runner.spec import SMALLEST_MAX_SIZE, HorizonSpec
from numbench.tasks import TASKS

_PREVIEWED_SIZE = 4
"""The size of the question of a measurement whose request is shown and recorded."""


def permitted_sizes(
    spec: HorizonSpec,
    tasks: Sequence[str],
    items: ItemSequences,
    description: ModelDescription,
    settings: RequestSettings,
) -> dict[str, tuple[int, ...]]:
    """Return the sizes of each task whose question and answer fit the limits of the model.

    Raises BadInput if the answers to a task do not fit at small sizes.
    """
    facts, longest, source = description.facts, settings.max_tokens, "--max-tokens or the catalogue"
    if longest is None and facts:
        longest, source = facts.max_output, "the model's limit"
    context = facts.context if facts else None
    permitted = {}
    for name in tasks:
        sizes = task_sizes(TASKS[name], spec.max_size)
        answers = answer_tokens(TASKS[name], sizes)
        prompts = prompt_tokens(TASKS[name], sizes, items)
        permitted[name] = tuple(
            size
            for size, answer, prompt in zip(sizes, answers, prompts, strict=True)
            if (longest is None or answer <= longest)
            and (context is None or prompt + answer <= context)
        )
        if max(permitted[name], default=0) < SMALLEST_MAX_SIZE:
            known = {context: "the model's context", longest: source}
            limit = min(each for each in known if each is not None)
            raise BadInput(
                f"the answers of {name} do not fit {limit:,} tokens "
                f"({known[limit]}) even at size {SMALLEST_MAX_SIZE}: raise --max-tokens, "
                "or omit the task"
            )
    return permitted


def example_questions(sizes: Mapping[str, tuple[int, ...]], items: ItemSequences) -> AskedItems:
    """Return two questions of each task: the one whose request is recorded, and the longest."""
    ids = {
        task: [
            ItemAddress(task, size, 0).id
            for size in (min(permitted, key=lambda n: abs(n - _PREVIEWED_SIZE)), permitted[-1])
        ]
        for task, permitted in sizes.items()
    }
    return AskedItems(Path(DATASET_NAME), items, ids)


def horizon_info(spec: HorizonSpec, sizes: Mapping[str, tuple[int, ...]]) -> HorizonInfo:
    return HorizonInfo(
        precision=spec.precision,
        max_items=spec.max_items,
        question_seed=spec.question_seed,
        largest={task: permitted[-1] for task, permitted in sizes.items()},
        generator=SEQUENCES_VERSION,
        design=DESIGN_VERSION,
    )
