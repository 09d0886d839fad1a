"""What a task is: one declaration that holds all the rest of the program needs to know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bench.records import Answer, Difficulty
from bench.tasks.draws import Draws

AnswerKind = Literal["number", "letter", "list"]
Metric = Literal["log_smape", "exact_match"]


class Problem(NamedTuple):
    """A sampled question before it is phrased. `params` are the sampling parameters."""

    operator: str
    operands: tuple[str, ...]
    params: dict[str, int]


class Sampling(NamedTuple):
    """The settings that a sampler obeys: significant digits of an operand (paper: 15 or 17)."""

    max_digits: int = 15


@dataclass(frozen=True)
class Task:
    """One kind of question.

    sample: one attempt from a fixed number of random words; None where the attempt breaks a
        rule of the task (range, degenerate list) and the next one is to be tried.
    truth: the exact answer of the question as printed, rounded once to 15 significant digits.
        ValueError where an operand is malformed or the answer is undefined.
    difficulty: δ from the printed operands and the answer, a pure function of the question.
    system_prompt: name of the file under `prompts/<set>/system/`.
    metric: what the headline score averages.
    words: random words per attempt.
    stream: name of the random stream; tasks that share one are asked about the same numbers.
    """

    name: str
    display: str
    answer_kind: AnswerKind
    metric: Metric
    system_prompt: str
    operators: tuple[str, ...]
    words: int
    sample: Callable[[Draws, Sampling], Problem | None]
    truth: Callable[[str, Sequence[str]], Answer]
    difficulty: Callable[[str, Sequence[str], Answer], Difficulty]
    stream: str | None = None
