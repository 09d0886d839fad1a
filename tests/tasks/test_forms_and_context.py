"""Forms of numbers, and numbers in context: every answer follows from the printed question."""

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest

import numbench as nb
from numbench.dataset.fresh_items import fresh_items, item_stratum
from numbench.dataset.store import open_dataset
from numbench.models.baseline import FLOAT_FORMATS, calculate, has_rule
from numbench.records import Completion, Item
from numbench.runner.few_shot import example_messages, examples
from numbench.scoring import score_exact, score_lenient
from numbench.tasks import (
    CONTEXT_TASKS,
    FORM_TASKS,
    TASKS,
    SampledQuestion,
    Task,
    TaskPrompts,
    check_task,
)
from numbench.tasks.items import content_hash, split_of
from numbench.tasks.prompts import load_prompt_set
from numbench.tasks.shards import Shard, generate_items
from tests.tasks.solver import solve

NAMES = (*FORM_TASKS, *CONTEXT_TASKS)


@pytest.fixture(autouse=True)
def _unlimited_integers() -> Iterator[None]:
    """Let the solver use `int(text)` for any number of digits."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(limit)


def items(task: str, size: int, count: int, split: str = "test") -> list[Item]:
    return list(islice(generate_items(Shard(task, 1, split, question_size=size)), count))


def check(item: Item, size: int) -> None:
    assert item.answer == solve(item.task, item.prompt), item.prompt[-200:]
    axis = TASKS[item.task].sizes
    assert axis is not None
    assert len(item.answer) <= axis.answer_characters(size)
    assert item.difficulty.base10 == item.params["size"] == size


@pytest.mark.parametrize("task", NAMES)
def test_answers_and_sizes_follow_from_the_printed_question(task: str) -> None:
    check_task(TASKS[task])
    axis = TASKS[task].sizes
    assert axis is not None
    largest = min(axis.maximum, 300) if task in FORM_TASKS else 100
    for size in {axis.minimum, 5, 20, largest}:
        for item in items(task, size, 6 if size <= 20 else 2):
            check(item, size)
            question = load_prompt_set().parse_question(item.prompt)
            assert question == (task, item.operator, item.operands)


@pytest.mark.parametrize("task", NAMES)
def test_the_released_datasets_are_the_first_questions_of_all_sizes_in_turns(task: str) -> None:
    axis, dataset = TASKS[task].sizes, open_dataset("forms" if task in FORM_TASKS else "context")
    assert axis is not None
    shard = Shard(task, question_size=axis.in_dataset)
    sizes = list(map(int, axis.in_dataset.split(",")))
    released = dataset.by_task[task]
    assert list(islice(generate_items(shard), len(sizes))) == released[: len(sizes)]
    assert sorted(item.difficulty.base10 for item in released[: len(sizes)]) == sizes
    assert len(released) % len(sizes) == 0
    few = [item.difficulty.base10 for item in released[:4]]
    assert min(few) < sum(sizes) / len(sizes) < max(few)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("forms", 57), ("context", 36)])
def test_the_released_datasets_are_generated_again(tmp_path: Path, name: str, size: int) -> None:
    """Their hashes are those of the release, or `generate` refuses the name."""
    folders = [tmp_path / str(workers) for workers in (1, 2)]
    for workers, folder in enumerate(folders, 1):
        nb.generate(name, tasks=name, size=size, out=folder, workers=workers)
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1]
    assert sum(map(len, files[0].values())) < 1_200_000


@pytest.mark.slow
@pytest.mark.parametrize("task", NAMES)
def test_the_largest_questions_can_be_asked_and_answered(task: str) -> None:
    axis = TASKS[task].sizes
    assert axis is not None
    sys.set_int_max_str_digits(640)
    (item,) = items(task, axis.maximum, 1)
    assert score_exact(item, answer(item, str(item.answer))).exact_match
    sys.set_int_max_str_digits(0)
    check(item, axis.maximum)


@pytest.mark.heavy
@pytest.mark.parametrize("task", NAMES)
def test_no_answer_is_wrong_and_no_question_is_in_two_splits(task: str) -> None:
    """In all, 100,000 questions and more."""
    sizes = range(4, 24) if task in CONTEXT_TASKS else range(6, 26)
    contents: dict[int, str] = {}
    for split in ("test", "val", "train"):
        for size in sizes:
            for item in items(task, size, 35, split):
                check(item, size)
                assert contents.setdefault(content_hash(item.operands), split) == split
                assert split_of(item.operands) == split
    assert len(contents) > 2050


def answer(item: Item, text: str) -> Completion:
    is_text = TASKS[item.task].answer_kind == "fraction"
    return Completion(text=f'{{"answer": "{text}"}}' if is_text else f'{{"answer": {text}}}')


FORMS = json.loads(Path(__file__).with_name("forms.json").read_text())
"""Task, text of an answer, and true if it is exact, or the kind of error."""


@pytest.mark.parametrize(("task", "written", "expected"), FORMS)
def test_the_value_and_its_form_are_judged_apart(task: str, written: str, expected: object) -> None:
    item = items(task, 4, 1)[0]
    numerator, _, denominator = str(item.answer).partition("/")
    significand, _, power = str(item.answer).partition("e")
    names = {
        "value": item.answer,
        "n": numerator,
        "d": denominator,
        "n2": 2 * int(float(numerator)),
        "d2": 2 * int(denominator or 0),
        "significand": significand,
        "power": power,
        "plain": item.operands[0],
        "digits": len(item.operands[0]),
    }
    text = f'{{"answer": "{written.format(**names)}"}}'
    score = score_exact(item, Completion(text=text))
    assert (score.exact_match or score.error_kind) == expected
    prose = score_lenient(item, Completion(text=f"So the result is **{written.format(**names)}**."))
    if "frac" not in written:
        assert (prose.exact_match, prose.error_kind) == (score.exact_match, score.error_kind)


HAS_RULE = ("add_integer", "multiply_scientific", "to_decimal_fraction", "table_sum", "text_count")
NO_RULE = ("divide_integer", "add_fraction", "digit_max_integer")


@pytest.mark.parametrize("task", (*HAS_RULE, *NO_RULE))
def test_float_arithmetic_answers_what_it_can(task: str) -> None:
    assert has_rule(task) == (task in HAS_RULE)
    if task in HAS_RULE:
        for item in items(task, 5, 5):
            question = load_prompt_set().parse_question(item.prompt)
            text = calculate(question, FLOAT_FORMATS["float64"])
            score = score_exact(item, Completion(text=f'{{"answer": {text}}}'))
            assert score.status == "ok" and score.error_kind in (None, "rounding", "digit")


def test_examples_are_of_all_sizes_and_have_the_requested_form() -> None:
    names = ("add_fraction", "to_scientific_decimal", "table_sum")
    for name in names:
        dataset = open_dataset("context" if name == "table_sum" else "forms")
        (shown,) = examples(dataset, (name,), 6).values()
        assert len({item.difficulty.base10 for item in shown}) == 6
        assert {split_of(item.operands) for item in shown} == {"val"}
        for item, message in zip(shown, example_messages(shown)[1::2], strict=True):
            assert score_exact(item, Completion(text=message.content)).exact_match


def test_fresh_questions_have_the_sizes_of_the_released_ones() -> None:
    tasks = {"forms": ("to_decimal_fraction", "length_integer"), "context": ("table_sum",)}
    for name, chosen in tasks.items():
        dataset = open_dataset(name)
        fresh = fresh_items(dataset, chosen, seed=99)
        for task in chosen:
            released = dataset.by_task[task]
            assert list(map(item_stratum, fresh[task])) == list(map(item_stratum, released))
            assert not {item.id for item in fresh[task]} & {item.id for item in released}


def test_the_task_of_the_guide_asks_for_a_form() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    code = "REDUCE = " + guide.partition("REDUCE = ")[2].partition("```")[0]
    assert len(code.splitlines()) < 10
    names = {cls.__name__: cls for cls in (Fraction, SampledQuestion, Task, TaskPrompts)}
    exec(code, names)
    check_task(names["REDUCE"])
