"""Wrong letters and lists: planted orders are found, random ones are not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import msgspec
import pytest

from numbench.dataset.store import open_dataset
from numbench.forensics.choices import CHOICE_TASKS, CHOICES, wrong_choices
from numbench.forensics.findings import explain
from numbench.records import Item, Response
from numbench.scoring import ScoredItem, ScoredRun, score_run
from numbench.scoring.exact_protocol import score_exact
from numbench.tasks.base import LETTERS
from numbench.tasks.items import make_item
from tests.report import runs

ITEMS = 150


def chosen(name: str, item: Item) -> tuple[int, ...] | None:
    (alternative,) = (known for known in CHOICES if known.name == name)
    return alternative.choose(item)


def scored(tmp_path: Path, answers: Mapping[str, tuple[int, ...]], items: list[Item]) -> ScoredRun:
    """Return a run with answers by their positions, as a model writes them."""
    rows: dict[str, list[ScoredItem]] = {task: [] for task in CHOICE_TASKS}
    for item in items:
        if item.task == "interval":
            text = f'"{LETTERS[answers[item.id][0]]}"'
        else:
            shown = [item.operands[i] for i in answers[item.id]]
            text = f"[{', '.join(shown)}]" if item.task == "sorting" else shown[0]
        response = Response(item_id=item.id, text=f'{{"answer": {text}}}')
        rows[item.task].append(ScoredItem(item, response, score_exact(item, response)))
    folder = runs.run(tmp_path / "run", runs.dataset(tmp_path), {})
    return score_run(folder)._replace(rows=rows)


def random_answer(item: Item, random: Random) -> tuple[int, ...]:
    count = len(item.operands)
    if item.task == "sorting":
        return tuple(random.sample(range(count), count))
    return (random.randrange(count),)


def items_of(task: str) -> list[Item]:
    return list(open_dataset("v1").by_task[task][:ITEMS])


@pytest.mark.parametrize(
    ("task", "operator", "numbers", "name", "expected"),
    [
        ("minmax", "maximum", ("9.9", "9.11", "-20"), "version", (1,)),
        ("minmax", "maximum", ("9.9", "9.11", "-20"), "magnitude", (2,)),
        ("minmax", "maximum", ("9.9", "9.11", "-20"), "opposite", (2,)),
        ("minmax", "maximum", ("9.9", "9.11", "-20"), "as_printed", (0,)),
        ("minmax", "minimum", ("9", "10", "25"), "text", (1,)),
        ("sorting", "ascending", ("3", "-4", "20"), "opposite", (2, 0, 1)),
        ("sorting", "descending", ("3", "-4", "20"), "magnitude", (2, 1, 0)),
        ("sorting", "ascending", ("3", "-4", "20"), "as_printed", (0, 1, 2)),
        ("interval", "interval", ("-3", "-5", "-4", "2"), "magnitude", (1,)),
        ("interval", "interval", ("-3", "-5", "-4", "2"), "opposite", None),
    ],
)
def test_orders(
    task: str,
    operator: str,
    numbers: tuple[str, ...],
    name: str,
    expected: tuple[int, ...] | None,
) -> None:
    assert chosen(name, make_item(task, operator, numbers, {})) == expected


@pytest.mark.parametrize(
    ("task", "name"),
    [("minmax", "opposite"), ("sorting", "magnitude"), ("sorting", "opposite"),
     ("sorting", "as_printed"), ("minmax", "as_printed")],
)  # fmt: skip
def test_planted_order_is_found(tmp_path: Path, task: str, name: str) -> None:
    random, items, answers = Random(1), items_of(task), {}
    planted = 0
    for index, item in enumerate(items):
        target = chosen(name, item)
        is_planted = index % 2 == 0 and target is not None
        answers[item.id] = target if is_planted and target else random_answer(item, random)
        planted += is_planted
    result = explain({}, wrong_choices(scored(tmp_path, answers, items)))
    (count,) = (c for c in result.counts if c.alternative == name)
    assert count.is_significant
    assert count.matches > 1.4 * count.expected
    assert result.matched >= count.matches


def test_answers_and_questions_of_other_forms_match_nothing(tmp_path: Path) -> None:
    numbers = ("9.9", "9.11", "-20")
    items = [
        make_item("minmax", "maximum", ("1e3", "2", "9E2"), {}),
        make_item("sorting", "ascending", numbers, {}),
        # The answer is a letter beyond the intervals of the question.
        make_item("interval", "interval", ("-3", "-5", "2"), {}),
    ]
    chosen_at = ((0,), (0,), (25,))
    answers = {item.id: choice for item, choice in zip(items, chosen_at, strict=True)}
    run = scored(tmp_path, answers, items)
    rows = dict(run.rows)
    (shown,) = rows["sorting"]
    for parsed in ("F", ("x", "y"), ("9.9", "9.9", "9.9"), None):
        score = msgspec.structs.replace(shown.score, parsed=parsed)
        foreign = msgspec.structs.replace(shown.item, operator="+", operands=("a", "b"))
        rows["sorting"] = [shown._replace(score=score), shown._replace(item=foreign)]
        sorting, interval = sorted(wrong_choices(run._replace(rows=rows)), reverse=True)
        assert (interval.task, interval.names) == ("interval", [[]])
        assert (sorting.task, sorting.names) == ("sorting", [[]])


def test_random_choices_are_not_explained(tmp_path: Path) -> None:
    items = [item for task in CHOICE_TASKS for item in items_of(task)]
    significant = 0
    for seed in range(20):
        random = Random(seed)
        answers = {item.id: random_answer(item, random) for item in items}
        result = explain({}, wrong_choices(scored(tmp_path / str(seed), answers, items)))
        assert all(count.decidable for count in result.counts)
        significant += any(count.is_significant for count in result.counts)
    assert significant <= 2
