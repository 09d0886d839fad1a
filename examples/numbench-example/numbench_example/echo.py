"""A provider: models that answer every question with a number from the question."""

import re
from collections.abc import Sequence

from numbench.errors import BadInput
from numbench.models import (
    ModelTarget,
    NamedModel,
    Price,
    ProviderPlugin,
    ReasoningLevel,
)
from numbench.models.base import Message, RequestSettings
from numbench.records import Completion, Usage

POSITIONS = {"first": 0, "last": -1}


class EchoModel:
    """A model whose answer is the first or the last number of the question."""

    def __init__(self, target: ModelTarget) -> None:
        if target.served_name not in POSITIONS:
            raise BadInput(f"unknown model {target.name!r}; use echo/first or echo/last")
        self.name = target.name
        self._position = POSITIONS[target.served_name]

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the number with the tokens that a real provider would report."""
        numbers = re.findall(r"-?\d+(?:\.\d+)?", messages[-1].content)
        return Completion(
            text=f'{{"answer": {numbers[self._position]}}}',
            finish_reason="stop",
            usage=Usage(input=len(messages[-1].content), generated=5, source="reported"),
        )

    async def close(self) -> None:
        """Release nothing: there is no connection."""


ECHO = ProviderPlugin(
    name="echo",
    open_model=EchoModel,
    examples=("first", "last"),
    levels={"none": ReasoningLevel(), "high": ReasoningLevel(request={"thinking": True})},
    models=(
        NamedModel(
            name="parrot",
            display="Parrot",
            route="echo/last",
            levels={"none": ReasoningLevel()},
        ),
    ),
    prices=(
        Price(
            route="echo/last",
            input=1.0,
            output=2.0,
            date="2026-11-22",
            source="examples/numbench-example",
        ),
    ),
)
