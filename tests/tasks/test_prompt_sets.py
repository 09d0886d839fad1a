"""Prompt sets: those of the paper verbatim, bundled ones, and those of users."""

from pathlib import Path

import pytest

from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import (
    bundled_sets,
    expand_prompt_names,
    load_prompt_set,
    open_prompt_set,
)
from tests.support.case_tables import each_row

PARAPHRASES = tuple(f"paraphrase-{number}" for number in range(1, 6))
SETS = ("paper", "calculator", "chinese", "explicit", "german", "minimal", *PARAPHRASES, "steps")


def test_the_bundled_sets() -> None:
    assert bundled_sets() == SETS
    names = expand_prompt_names(["paper", "paraphrases", "steps"])
    assert names == ("paper", *PARAPHRASES, "steps")


@pytest.mark.parametrize("name", SETS)
def test_questions_contain_the_numbers_as_they_are_and_are_read_back(name: str) -> None:
    prompts = load_prompt_set(name)
    assert set(PAPER_TASKS) <= set(prompts.tasks)
    for task, items in open_dataset("v1").by_task.items():
        for item in items[:60]:
            prompt = prompts.format_question(task, item.operator, item.operands)
            assert prompts.parse_question(prompt) == (task, item.operator, item.operands)
            assert all(operand in prompt for operand in item.operands)


@pytest.mark.parametrize("name", SETS)
def test_the_prompts_of_every_task_ask_for_the_key_answer(name: str) -> None:
    prompts = load_prompt_set(name)
    for task in PAPER_TASKS.values():
        operands = ("1", "2", "3")
        question = prompts.format_question(task.name, task.operators[0], operands)
        system = prompts.system_prompt(task.name)
        assert '{"answer": ' in (system or question)
        assert (system is None) == (name == "minimal")


def test_only_steps_allows_working_and_paraphrases_keep_the_meaning() -> None:
    sets = {name: load_prompt_set(name).options for name in SETS}
    assert [name for name in SETS if sets[name].working] == ["steps"]
    assert tuple(name for name in SETS if sets[name].paraphrase_of == "paper") == PARAPHRASES


VALID = 'system = "paper"\n[addition]\n"+" = "Add {a} and {b}."\n"-" = "{a} minus {b}?"\n'


def user_set(folder: Path, questions: str, **system: str) -> Path:
    folder.mkdir()
    (folder / "questions.toml").write_text(questions, encoding="utf-8")
    for name, text in system.items():
        (folder / "system").mkdir(exist_ok=True)
        (folder / "system" / f"{name}.txt").write_text(text)
    return folder


def test_a_folder_is_a_prompt_set_with_its_own_tasks(tmp_path: Path) -> None:
    prompts = open_prompt_set(user_set(tmp_path / "mine", VALID))
    assert (prompts.name, prompts.tasks) == ("mine", ("addition",))
    assert prompts.format_question("addition", "-", ("3", "-4")) == "3 minus -4?"
    assert set(prompts.ref(["addition"]).tasks) == {"addition"}
    others = open_prompt_set(user_set(tmp_path / "others", 'questions = "paper"\n' + VALID))
    assert others.format_question("addition", "-", ("3", "-4")) == "3 minus -4?"
    assert set(others.tasks) == set(PAPER_TASKS)
    with pytest.raises(BadInput, match="the prompt set mine has no prompts for mean, std"):
        prompts.ref(["addition", "mean", "std"])


def test_the_hashes_of_tasks_change_with_their_prompts_only(tmp_path: Path) -> None:
    mult = '[multiplication]\n"*" = "{a} times {b}?"\n'
    first = open_prompt_set(user_set(tmp_path / "a", VALID + mult)).ref(
        ("addition", "multiplication")
    )
    second = open_prompt_set(user_set(tmp_path / "b", VALID + mult.replace("times", "by"))).ref(
        ("addition", "multiplication")
    )
    assert first.tasks["addition"] == second.tasks["addition"]
    assert first.tasks["multiplication"] != second.tasks["multiplication"]
    assert first.sha256 != second.sha256


def test_a_prompt_of_a_task_precedes_that_of_its_group(tmp_path: Path) -> None:
    text = VALID.replace('system = "paper"\n', "") + '[mean]\nmean = "Mean of {list}?"\n'
    folder = user_set(tmp_path / "own", text, arithmetic="All.", mean="Mean.\n")
    prompts = open_prompt_set(folder)
    assert [prompts.system_prompt(task) for task in prompts.tasks] == ["All.", "Mean."]


@each_row(__file__, "malformed_prompt_sets")
def test_a_malformed_set_is_one_line_with_file_and_field(
    tmp_path: Path, questions: str, message: str
) -> None:
    folder = user_set(tmp_path / "mine", questions)
    with pytest.raises(BadInput, match=message) as error:
        open_prompt_set(folder)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)


def test_other_errors_of_sets(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no prompt set 'nice'; use paper, calculator, chinese"):
        open_prompt_set("nice")
    with pytest.raises(BadInput, match="no such folder"):
        open_prompt_set(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="a prompt set needs this file"):
        open_prompt_set(tmp_path / "empty")
    with pytest.raises(BadInput, match="steps is the name of a bundled set; rename the folder"):
        open_prompt_set(user_set(tmp_path / "steps", VALID))
    text = VALID.replace('system = "paper"\n', "")
    with pytest.raises(BadInput, match="empty; for no system prompt"):
        open_prompt_set(user_set(tmp_path / "blank", text, arithmetic="\n"))


def test_the_set_of_the_paper_has_the_released_hash() -> None:
    ref = load_prompt_set().ref(PAPER_TASKS)
    assert ref.sha256 == "9b96901389c4e3c98760a0d410734ad36b17f155dd33566ed0a97ea8f0b2786a"
    assert ref.tasks["addition"].startswith("3c6c80d36fe5db52")


@pytest.mark.parametrize(
    "prompt", ["", "What is 1 + 2", "What is 1 % 2?", "What is the mean of the list []?", "hello"]
)
def test_other_texts_are_not_questions(prompt: str) -> None:
    with pytest.raises(ValueError, match="not a question"):
        load_prompt_set().parse_question(prompt)
