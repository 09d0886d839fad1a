"""The check of a plugin's task when it is registered: its functions and their first results."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TypeVar

from numbench.records import Answer, Difficulty
from numbench.tasks.base import (
    LETTERS,
    SampledQuestion,
    SamplingSettings,
    Task,
    template_fields,
)
from numbench.tasks.random_words import RandomWords

MAX_DISCARDED = 1000
"""A sampler may discard so many attempts in a row when it is checked."""

_QUESTIONS = 8
_PLAIN = re.compile(r"(?!-0\Z)-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")
_ANSWERS = {
    "number": "a decimal number in plain notation, as text",
    "letter": "one letter from A to Z",
    "list": "a tuple of texts, decimal numbers in plain notation",
}

T = TypeVar("T")


def check_task(task: Task) -> None:
    """Check a task by its first questions. Raises ValueError that says which field is wrong."""
    for name in ("prompts", "sample"):
        if getattr(task, name) is None:
            raise ValueError(f"Task.{name} is missing")
    sizes = task.sizes
    settings = SamplingSettings(question_size=sizes and sizes.minimum)
    count = task.words_per_attempt if sizes is None else sizes.words(sizes.minimum)
    generator, params = random.Random(0), set[frozenset[str]]()
    found = attempts = 0
    while found < _QUESTIONS and attempts < MAX_DISCARDED * _QUESTIONS:
        attempts += 1
        words = [generator.getrandbits(64) for _ in range(count)]
        question = sample_question(task, RandomWords(words), settings)
        if question != sample_question(task, RandomWords(words), settings):
            raise ValueError(
                "Task.sample gives different questions for the same random words; take all "
                "randomness from `words`"
            )
        if question is not None:
            found += 1
            _check_question(task, question)
            params.add(frozenset(question.params))
        elif attempts >= MAX_DISCARDED and not found:
            raise ValueError(f"Task.sample discarded {attempts:,} attempts; discard fewer")
        if len(params) > 1:
            raise ValueError("Task.sample has to return the same keys of params each time")


def sample_question(
    task: Task, words: RandomWords, settings: SamplingSettings
) -> SampledQuestion | None:
    """Return the question of an attempt. Raises ValueError if it is none that can be asked."""
    assert task.sample is not None
    question = _call("Task.sample", task.sample, words, settings)
    if question is None:
        return None
    if not isinstance(question, SampledQuestion):
        raise ValueError(f"Task.sample returned {question!r:.80}; return a SampledQuestion or None")
    operator, operands, params = question
    if operator not in task.operators:
        raise ValueError(f"Task.sample returned the operator {operator!r}, not in Task.operators")
    if not _are_plain(operands):
        raise ValueError(
            f"Task.sample returned the operands {operands!r:.80}; return {_ANSWERS['list']}"
        )
    if not all(isinstance(key, str) and type(value) is int for key, value in params.items()):
        raise ValueError(f"Task.sample returned the params {params!r:.80}; use integers")
    return question


def answer_question(task: Task, question: SampledQuestion) -> Answer:
    """Return the exact answer. Raises ValueError if it is not one of the kind that is declared."""
    operator, operands, _ = question
    answer = _call("Task.exact_answer", task.exact_answer, operator, operands)
    if task.answer_kind == "letter":
        is_valid = isinstance(answer, str) and len(answer) == 1 and answer in LETTERS
    else:
        is_valid = _are_plain(answer if task.answer_kind == "list" else (answer,))
    if not is_valid:
        raise ValueError(
            f"Task.exact_answer returned {answer!r:.80} for the operands "
            f"{', '.join(operands):.80}; return {_ANSWERS[task.answer_kind]}"
        )
    return answer


def _check_question(task: Task, question: SampledQuestion) -> None:
    assert task.prompts is not None
    operator, operands, _ = question
    answer = answer_question(task, question)
    difficulty = _call("Task.difficulty", task.difficulty, operator, operands, answer)
    if not isinstance(difficulty, Difficulty):
        raise ValueError(f"Task.difficulty returned {difficulty!r:.80}; return a Difficulty")
    chance = _call("Task.chance_accuracy", task.chance_accuracy, len(operands))
    if not 0 <= chance <= 1:
        raise ValueError(f"Task.chance_accuracy returned {chance}; return a probability, 0 to 1")
    fields = set(template_fields(task.prompts.questions[operator]))
    if not fields & {"list", "expression"} and len(fields) != len(operands):
        raise ValueError(
            f"Task.sample returned {len(operands)} operands, but the question of {operator!r} has "
            f"{len(fields)} fields"
        )
    if "expression" in fields and task.expression is None:
        raise ValueError("Task.expression is missing; a question has the field {expression}")


def _call(name: str, function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function of the task. Raises ValueError if it fails."""
    try:
        return function(*arguments)
    except Exception as error:
        # Whatever a plugin raises is reported with the field that raised it.
        raise ValueError(f"{name} failed ({type(error).__name__}: {error})") from error


def _are_plain(values: object) -> bool:
    """Return whether values are a tuple of decimal numbers in plain notation, as texts."""
    return (
        isinstance(values, tuple)
        and bool(values)
        and all(isinstance(value, str) and _PLAIN.fullmatch(value) for value in values)
    )
