"""Training questions: never of another split, reproducible, with the scores as rewards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_questions import Question, RewardName, sample, training_question

from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.records import Completion, Item
from numbench.scoring import score_exact
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import split_of
from tests.support.case_tables import each_row

V1_ITEMS = [items[7] for items in open_dataset("v1").by_task.values()]


@given(st.sampled_from(list(PAPER_TASKS)), st.integers(2, 15), st.integers(0, 2**64))
def test_every_question_is_in_the_training_split(task: str, difficulty: int, seed: int) -> None:
    question = sample(task, difficulty, seed)
    assert split_of(question.item.operands) == "train"
    if task in ("addition", "multiplication"):
        digits = [operand.lstrip("-").replace(".", "") for operand in question.item.operands]
        assert max(len(text.strip("0")) for text in digits) <= difficulty


def test_arguments_decide_the_question() -> None:
    prompts = [sample("addition", 12, seed).prompt for seed in (1, 1, 2, 3)]
    assert prompts[0] == prompts[1]
    assert len(set(prompts)) == 3
    assert {len(operand) for operand in sample("long_addition", 40, 1).item.operands} == {40}
    assert all(0 < int(n) < 2**9 for n in sample("minmax", 9, 3, bits=True).item.operands)


@each_row(__file__, "impossible_arguments")
def test_impossible_arguments_are_rejected(
    task: str, difficulty: int, seed: int, options: dict[str, bool], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        sample(task, difficulty, seed, **options)
    with pytest.raises(BadInput, match="belongs to the test split"):
        training_question(V1_ITEMS[0])


@pytest.mark.parametrize("item", V1_ITEMS, ids=lambda item: item.task)
@pytest.mark.parametrize("name", ["exact", "log_smape"])
def test_a_reward_is_the_score(item: Item, name: RewardName) -> None:
    question = Question(item, None, name)
    answer = item.answer if isinstance(item.answer, str) else f"[{', '.join(item.answer)}]"
    shown = f'"{answer}"' if answer.isalpha() else answer
    assert question.reward(f'{{"answer": {shown}}}') == 1
    for text in (f'{{"answer": {answer[:-1]}7}}', '{"answer": 1e9}', "", '{"answer": [' * 999):
        score = score_exact(item, Completion(text=text))
        is_graded = name == "log_smape" and score.log_smape is not None
        assert question.reward(text) == float(score.log_smape if is_graded else score.exact_match)
