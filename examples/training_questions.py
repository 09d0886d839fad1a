"""Reinforcement learning with verifiable rewards: endless exact questions and their rewards.

    from training_questions import sample

    question = sample("minmax", difficulty=5, seed=1)
    question.system, question.prompt      # what the model is asked
    question.reward('{"answer": 7.25}')   # 0.0 … 1.0

All questions are of the training split; those of the test and validation splits are never drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from numbench.errors import BadInput
from numbench.records import Completion, Item
from numbench.scoring import score_exact
from numbench.tasks import TASKS, check_task_name
from numbench.tasks.items import split_of
from numbench.tasks.prompts import load_prompt_set
from numbench.tasks.shards import Shard, check_bits, generate_items

MAX_DIGITS = 15
"""The highest difficulty of a task of the paper: significant digits of its operands."""

TRAINING_SPLIT = "train"

RewardName = Literal["exact", "log_smape"]
"""`exact`: 1 for a correct answer, otherwise 0. `log_smape`: the share of correct digits, 0 to 1;
the same as `exact` for a task whose metric is exact match."""


@dataclass(frozen=True)
class Question:
    """A training question.

    system: the system prompt, which requests the format of the answer; None if the task has none.
    """

    item: Item
    system: str | None
    reward_name: RewardName = "log_smape"

    @property
    def prompt(self) -> str:
        """The question as text."""
        return self.item.prompt

    def reward(self, text: str) -> float:
        """Return the reward of a response, its score by the `exact` protocol, 0 to 1.

        Never raises, whatever the text.
        """
        score = score_exact(self.item, Completion(text=text))
        is_graded = self.reward_name == "log_smape" and score.log_smape is not None
        return float((score.log_smape if is_graded else score.exact_match) or 0.0)


def sample(
    task: str,
    difficulty: int,
    seed: int,
    *,
    reward: RewardName = "log_smape",
    bits: bool = False,
) -> Question:
    """Return a question of the training split. The same arguments give the same question.

    difficulty: for a scaled task the size of its questions, for any other the maximum number of
    significant digits of an operand, 2 to 15. bits: the operands are integers of at most
    `difficulty` bits instead (tasks of `numbench.tasks.shards.INTEGER_TASKS`).

    Raises BadInput for an unknown task, an impossible difficulty, a negative seed, or if the
    training split has no such question.
    """
    check_task_name(task)
    if seed < 0:
        raise BadInput(f"seed {seed}: use 0 or more")
    sizes, field = TASKS[task].sizes, "max_digits" if TASKS[task].sizes is None else "question_size"
    lowest, highest = (2, MAX_DIGITS) if sizes is None else (sizes.minimum, sizes.maximum)
    if bits:
        check_bits([task], difficulty)
        field = "max_bits"
    elif not lowest <= difficulty <= highest:
        raise BadInput(f"task {task!r}: difficulty {difficulty}; use {lowest} to {highest}")
    shard = Shard(task, seed, TRAINING_SPLIT, **{field: difficulty})
    item = next(generate_items(shard), None)
    if item is None:
        raise BadInput(
            f"task {task!r}: the training split has no question of difficulty {difficulty}; "
            "use a higher difficulty"
        )
    return training_question(item, reward)


def training_question(item: Item, reward: RewardName = "log_smape") -> Question:
    """Return the question of an item of the training split.

    Raises BadInput for an unknown reward, and if the content of the item assigns it to another
    split.
    """
    if reward not in get_args(RewardName):
        names = ", ".join(get_args(RewardName))
        raise BadInput(f"unknown reward {reward!r}; use one of {names}")
    split = split_of(item.operands)
    if split != TRAINING_SPLIT:
        raise BadInput(f"item {item.id} belongs to the {split} split; train on the train split")
    return Question(item, load_prompt_set().system_prompt(item.task), reward)
