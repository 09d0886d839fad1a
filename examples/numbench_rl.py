"""The training questions as an endless taskset of the library `verifiers` (0.4).

Its commands import a taskset by the name of a module; this one is `numbench-rl`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import msgspec
import verifiers.v1 as vf
from pydantic import Field
from training_questions import Question, RewardName, sample, training_question

from numbench.records import Item
from numbench.runner.few_shot import example_messages


class NumbenchData(vf.TaskData):
    """A question. item: the item as JSON, with its exact answer. reward: the name of the reward."""

    item: str
    reward: RewardName


class NumbenchTask(vf.Task[NumbenchData]):
    """The reward of a response to one question."""

    def question(self) -> Question:
        """Return the question. Raises BadInput if its item is not of the training split."""
        return training_question(msgspec.json.decode(self.data.item, type=Item), self.data.reward)

    @vf.reward(weight=1.0)
    async def numbench(self, trace: vf.Trace) -> float:
        """Return the reward of the last reply, 0 to 1."""
        return self.question().reward(trace.last_reply)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Return whether the exact answer, in the requested format, has the full reward."""
        question = self.question()
        return question.reward(example_messages([question.item])[1].content) == 1


class NumbenchConfig(vf.TasksetConfig):
    """Which questions are drawn: as in `training_questions.sample`.

    highest: if set, the difficulties `difficulty` … `highest` take turns, `per_level` questions
    each; the last one stays.
    """

    tasks: list[str] = Field(["minmax"])
    difficulty: int = 5
    highest: int | None = None
    per_level: int = 1000
    first_seed: int = 0
    reward: RewardName = "log_smape"
    bits: bool = False


class NumbenchTaskset(vf.Taskset[NumbenchTask, NumbenchConfig]):
    """Endless questions of the training split; the tasks take turns."""

    INFINITE = True

    def load(self) -> Iterator[NumbenchTask]:
        """Yield questions without end."""
        config = self.config
        highest = config.difficulty if config.highest is None else config.highest
        for index in count():
            difficulty = min(config.difficulty + index // config.per_level, highest)
            question = sample(
                config.tasks[index % len(config.tasks)],
                difficulty,
                config.first_seed + index,
                reward=config.reward,
                bits=config.bits,
            )
            data = NumbenchData(
                id=question.item.id,
                prompt=question.prompt,
                system_prompt=question.system,
                item=msgspec.json.encode(question.item).decode(),
                reward=config.reward,
            )
            yield NumbenchTask(data, config.task)


__all__ = ["NumbenchTaskset"]
