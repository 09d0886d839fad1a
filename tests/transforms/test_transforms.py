"""Transformed items: their exact answers by two computations, and their notation read back."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.core.decimal_numbers import format_decimal
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.records import Item
from numbench.tasks import PAPER_TASKS, TASKS
from numbench.transforms import TRANSFORMS, find_transform, open_variant
from tests.support.case_tables import each_row

NUMBERS = st.builds(
    lambda significand, exponent: format_decimal(Decimal(f"{significand}e{exponent}")),
    st.integers(-(10**17), 10**17),
    st.integers(-20, 12),
)
READERS: dict[str, Callable[[str], Decimal]] = {
    "grouping": lambda text: Decimal(text.replace(",", "")),
    "scientific": Decimal,
    "plus": Decimal,
    "trailing-zeros": Decimal,
    "decimal-comma": lambda text: Decimal(text.replace(",", ".")),
}


def items(task: str, count: int = 120) -> list[Item]:
    return open_dataset("v1").by_task[task][:count]


@given(NUMBERS)
def test_every_notation_has_the_same_value(number: str) -> None:
    for name, read in READERS.items():
        assert read(TRANSFORMS[name].notation(number)) == Decimal(number)


@each_row(__file__, "notations")
def test_notations(number: str, written: tuple[str, ...]) -> None:
    assert tuple(TRANSFORMS[name].notation(number) for name in READERS) == written


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_answer_of_a_transformed_item_is_the_mapped_answer(name: str) -> None:
    transform, variant = find_transform(name), open_variant("paper", name)
    for task in sorted(transform.tasks):
        for item in items(task):
            asked = variant.ask(item)
            assert asked.answer == transform.map_answer(task, item.operator, item.answer)
            exact = TASKS[task].exact_answer(asked.operator, asked.operands)
            assert asked.answer == exact
            same = (asked.id, asked.task, asked.difficulty, asked.params)
            assert same == (item.id, item.task, item.difficulty, item.params)


@pytest.mark.parametrize("name", ["swap", "negate"])
def test_a_transformation_twice_is_the_item_itself(name: str) -> None:
    variant = open_variant("paper", name)
    for task in sorted(find_transform(name).tasks):
        for item in items(task, 40):
            assert variant.ask(variant.ask(item)) == item


def test_prompts() -> None:
    item = next(item for item in items("mean") if len(item.operands) == 2)
    first, second = item.operands
    asked = open_variant("paraphrase-2", "decimal-comma").ask(item)
    commas = f"{first.replace('.', ',')}; {second.replace('.', ',')}"
    assert asked.prompt == f"What is the average of the numbers [{commas}]?"
    assert asked.operands == item.operands
    assert open_variant("paper", "none").ask(item) is item


def test_tasks_that_a_transformation_does_not_apply_to() -> None:
    swap = open_variant("paper", "swap")
    assert swap.select_tasks(tuple(PAPER_TASKS), is_chosen=False) == (
        "minmax", "sorting", "addition", "multiplication", "mean", "std",
    )  # fmt: skip
    with pytest.raises(BadInput, match="--transform swap does not apply to division: choose"):
        swap.select_tasks(("addition", "division"), is_chosen=True)
    with pytest.raises(BadInput, match="does not apply to copy"):
        swap.select_tasks(("copy",), is_chosen=False)


@pytest.mark.parametrize("name", ["upside-down", "scale3", ""])
def test_an_unknown_transformation_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(BadInput, match=r"unknown transformation .* use none, grouping, .* negate"):
        find_transform(name)


def test_answers_of_models_are_mapped_in_their_notation() -> None:
    negate = find_transform("negate").map_answer
    for answer, mapped in (("1e999999", "-1e999999"), ("-0.5", "0.5"), ("0", "0")):
        assert negate("addition", "+", answer) == mapped
