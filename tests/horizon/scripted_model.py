"""A scripted server whose probability of a right answer falls with the size of the question."""

import hashlib
import math
from collections.abc import Mapping

from numbench.records import Answer
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply

SLOPE = 4.0


def size_of(prompt: str) -> tuple[str, int]:
    """Return the task and the size of a question."""
    question = load_prompt_set().parse_question(prompt)
    task = TASKS[question.task]
    answer = task.exact_answer(question.operator, question.operands)
    return question.task, task.difficulty(question.operator, question.operands, answer).base10


def answer_text(prompt: str, is_right: bool) -> str:
    """Return the exact answer to a question, or a wrong one."""
    question = load_prompt_set().parse_question(prompt)
    answer: Answer = TASKS[question.task].exact_answer(question.operator, question.operands)
    if not is_right:
        return '{"answer": "C"}' if answer in ("A", "B") else '{"answer": 5}'
    if isinstance(answer, tuple):
        return f'{{"answer": [{", ".join(answer)}]}}'
    return f'{{"answer": "{answer}"}}' if answer in ("A", "B") else f'{{"answer": {answer}}}'


def is_answered_right(prompt: str, horizon: float) -> bool:
    """Return whether the model answers a question: fixed for each, logistic in ln size."""
    _, size = size_of(prompt)
    draw = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big") / 2**64
    return draw < 1 / (1 + math.exp(-SLOPE * (math.log(horizon) - math.log(size))))


def reply(received: ReceivedRequest, horizons: Mapping[str, float] | float = 8.0) -> Reply:
    """Return the model's answer. horizons: h50 by task, or that of all tasks."""
    task, size = size_of(received.prompt)
    horizon = horizons if isinstance(horizons, int | float) else horizons[task]
    text = answer_text(received.prompt, is_answered_right(received.prompt, horizon))
    usage = {"prompt_tokens": 50 + size, "completion_tokens": 10 + size}
    return servers.chat(text, usage=usage | {"total_tokens": 60 + 2 * size})
