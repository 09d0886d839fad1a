"""Reinforcement learning with verifiable rewards: endless exact questions and their rewards.

    from numbench.rl import sample

    question = sample("minmax", difficulty=5, seed=1)
    question.system, question.prompt      # what the model is asked
    question.reward('{"answer": 7.25}')   # 0.0 … 1.0

All questions are of the training split; those of the test and validation splits are never drawn.
"""

from numbench.rl.questions import MAX_DIGITS, Question, sample, training_question
from numbench.rl.rewards import RewardName

__all__ = [
    "MAX_DIGITS",
    "Question",
    "RewardName",
    "sample",
    "training_question",
]
