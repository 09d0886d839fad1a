"""Scaled tasks: questions of a size, with answers that an independent computation confirms."""

import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import islice

import pytest

from numbench.records import Completion, Item
from numbench.scoring import score_exact
from numbench.tasks import SCALED_TASKS
from numbench.tasks.items import split_of
from numbench.tasks.prompts import load_prompt_set
from numbench.tasks.scaled import parse_nested
from numbench.tasks.shards import Shard, generate_items

SIZES = (2, 3, 7, 18, 100, 1000, 4096)


@pytest.fixture(autouse=True)
def _unlimited_integers() -> Iterator[None]:
    """Let the independent computation use `int(text)` for any number of digits."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(limit)


def items(task: str, size: int, count: int) -> list[Item]:
    return list(islice(generate_items(Shard(task, question_size=size)), count))


def answer_from_prompt(task: str, prompt: str) -> object:
    """Compute the answer from nothing but the text of the question."""
    if task == "nested":
        expression = prompt.removeprefix("Evaluate the expression ").removesuffix(".")
        return eval(expression)
    if task == "chain":
        return sum(int(term.replace(" ", "")) for term in re.findall(r"(?:- )?\d+", prompt))
    numbers = [int(digits) for digits in re.findall(r"\d+", prompt)]
    match task:
        case "long_addition":
            return numbers[0] + numbers[1]
        case "long_subtraction":
            return numbers[0] - numbers[1]
        case "long_multiplication":
            return numbers[0] * numbers[1]
        case "long_division":
            return Fraction(*numbers)
        case "long_comparison":
            return "A" if numbers[0] > numbers[1] else "B"
        case "long_sorting":
            return sorted(numbers, reverse="descending" in prompt)
        case "long_max":
            return max(numbers)
        case "long_sum":
            return sum(numbers)
        case "long_mean":
            return Fraction(sum(numbers), len(numbers))
    assert task == "copy"
    return numbers[0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("task", SCALED_TASKS)
def test_answers_follow_from_the_question(task: str, size: int) -> None:
    for item in items(task, size, 1 if size > 100 else 6):
        expected = answer_from_prompt(task, item.prompt)
        if isinstance(item.answer, tuple):
            assert list(map(int, item.answer)) == expected
        elif isinstance(expected, str):
            assert item.answer == expected
        else:
            assert Fraction(item.answer) == expected
            assert "e" not in item.answer and not item.answer.startswith("-0")
        axis = SCALED_TASKS[task].sizes
        assert axis is not None
        length = sum(map(len, item.answer)) if isinstance(item.answer, tuple) else len(item.answer)
        assert length <= axis.answer_characters(size)
        assert item.difficulty.base10 == item.params["size"] == size
        assert split_of(item.operands) == "test"
        if size <= 100:
            question = load_prompt_set().parse_question(item.prompt)
            assert question == (task, item.operator, item.operands)


def test_integers_beyond_pythons_limit_need_no_setting() -> None:
    sys.set_int_max_str_digits(4300)
    (item,) = items("long_multiplication", 4096, 1)
    assert len(str(item.answer)) > 8000
    assert int(Decimal(str(item.answer))) % 9 == sum(map(int, str(item.answer))) % 9


@pytest.mark.parametrize("text", ["", "3", "3 + 4 * 2", "(3 + 4", "3 + 4)", "(3 + 4) *", "3 +4"])
def test_other_texts_are_no_nested_expression(text: str) -> None:
    with pytest.raises(ValueError, match="expression"):
        parse_nested(text)


def test_every_digit_of_an_answer_counts() -> None:
    (item,) = items("long_addition", 60, 1)
    answer = str(item.answer)
    assert score_exact(item, Completion(text=f'{{"answer": {answer}}}')).exact_match
    grouped = f"{int(answer):,}"
    assert score_exact(item, Completion(text=f'{{"answer": "{grouped}"}}')).exact_match
    for position in (1, 15, 39, 41, len(answer) - 1):
        digit = "1" if answer[position] == "0" else "0"
        wrong = answer[:position] + digit + answer[position + 1 :]
        score = score_exact(item, Completion(text=f'{{"answer": {wrong}}}'))
        assert score.status == "ok" and not score.exact_match, position
    rounded = f"{Decimal(answer):.30e}"
    assert not score_exact(item, Completion(text=f'{{"answer": {rounded}}}')).exact_match


@pytest.mark.parametrize("task", SCALED_TASKS)
def test_correct_answers_of_the_largest_size_are_scored_as_correct(task: str) -> None:
    (item,) = items(task, 4096, 1)
    answer = item.answer
    body = f"[{', '.join(answer)}]" if isinstance(answer, tuple) else answer
    text = f'{{"answer": "{body}"}}' if task == "long_comparison" else f'{{"answer": {body}}}'
    score = score_exact(item, Completion(text=text))
    assert score.status == "ok" and score.exact_match
