"""Questions for a model in this process, together or one after another."""

import asyncio
from collections.abc import Sequence
from typing import Any

from numbench.models import Message
from numbench.models.base import RequestSettings
from numbench.records import Completion

SYSTEM = Message("system", "Return one JSON object.")


def ask(
    model: Any, questions: Sequence[str], together: bool = True, **settings: Any
) -> list[Completion]:
    """Return the answers of a model, in at most 40 tokens unless the settings say otherwise."""
    shaped = RequestSettings(**({"temperature": 0.0, "max_tokens": 40} | settings))

    async def one(question: str) -> Completion:
        completion: Completion = await model.answer([SYSTEM, Message("user", question)], shaped)
        return completion

    async def every() -> list[Completion]:
        if together:
            return list(await asyncio.gather(*map(one, questions)))
        return [await one(question) for question in questions]

    return asyncio.run(every())


def assert_batches_change_no_answer(model: Any, questions: Sequence[str]) -> list[Completion]:
    """Ask alone and together; return the answers."""
    alone, together = ask(model, questions, together=False), ask(model, questions)
    assert {c.extra["batch"] for c in alone} == {1}
    assert {c.extra["batch"] for c in together} == {len(questions)}
    assert [(c.text, c.usage, c.finish_reason) for c in alone] == [
        (c.text, c.usage, c.finish_reason) for c in together
    ]
    return alone
