"""One of the paper's small models, run in this process from a local folder: `checkpoint/PATH`.

It reads the question out of the last user message and nothing else: these models know no prompts.
Its answer is put into the JSON form that the system prompts ask for. Questions that wait together
are answered in one batch, without filling between them, so that an answer does not depend on what
shares its batch, except by the rounding of the arithmetic.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.errors import BadInput, NumbenchError
from bench.models.base import Message, Settings
from bench.models.batching import Batcher
from bench.models.failures import failed
from bench.models.fingerprint import fingerprint
from bench.records import Completion, Failure, Usage
from bench.shipped import came_along, shipped
from bench.tasks.phrasing import prompts

if TYPE_CHECKING:
    from bench.bittoken.checkpoint import Loaded
    from bench.bittoken.generate import Generated
    from bench.bittoken.question import Encoded

MOST = 256
"""Questions in one batch at most; half as many each time the memory does not suffice."""


class _Ask(NamedTuple):
    """One question. `limit` bounds the tokens of its answer, `timeout` its seconds."""

    question: Encoded
    limit: int
    timeout: float


class CheckpointModel:
    """A trained network, on the GPU where there is one."""

    precision = "float32"

    def __init__(self, name: str, folder: Path) -> None:
        """BadInput where `folder` holds no checkpoint, or the `local` extra is not installed."""
        if not folder.is_dir():
            along = ", ".join(f"checkpoint/{each}" for each in shipped())
            raise BadInput(f"{name}: there is no folder {folder} (what comes along: {along})")
        if any(find_spec(package) is None for package in ("torch", "safetensors")):
            raise BadInput(f"{name} needs an extra: pip install 'numbench[local]'")
        from bench.bittoken.generate import usual_limit

        self.name = name
        self._loaded = _load(name, folder)
        self.display = _display(self._loaded, folder)
        self.fingerprint = fingerprint(self._loaded.files)
        self.limit = usual_limit(self._loaded.lexicon)
        self._stop = threading.Event()
        self._batches: Batcher[_Ask, Completion] = Batcher(self._answer_all, MOST)

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """The greedy answer to the last question, tokens counted.

        A failure of kind `item` where that is no question of the benchmark, where it fills the
        model's context, or where the answer takes longer than `settings.timeout` or more memory
        than there is.
        """
        from bench.bittoken.question import encode

        if settings.temperature:
            return failed(Failure(kind="run", message="checkpoints answer at temperature 0 only"))
        prompt = next(m.content for m in reversed(messages) if m.role == "user")
        try:
            question = encode(prompts().read(prompt), self._loaded.lexicon)
        except (ValueError, BadInput) as error:
            return failed(Failure(kind="item", message=str(error)))
        context = self._loaded.network.config.context
        limit = min(settings.max_tokens or self.limit, context - len(question.tokens))
        if limit < 1:
            said = f"the question's {len(question.tokens)} tokens fill the context of {context}"
            return failed(Failure(kind="item", message=said))
        return await self._batches(_Ask(question, limit, settings.timeout))

    async def close(self) -> None:
        """Stop the batch under way at its next token."""
        self._stop.set()
        await self._batches.finish()
        self._stop.clear()

    def _answer_all(self, asks: Sequence[_Ask]) -> list[Completion]:
        """One completion for each question, in halves where the memory does not suffice.

        NumbenchError where the machine fails in another way.
        """
        import torch

        from bench.bittoken.generate import generate

        start = time.monotonic()
        until = start + max(ask.timeout for ask in asks)
        try:
            answers = generate(
                self._loaded.network,
                self._loaded.lexicon,
                [ask.question for ask in asks],
                [ask.limit for ask in asks],
                lambda: self._stop.is_set() or time.monotonic() > until,
            )
        except torch.OutOfMemoryError:
            answers = None
        except RuntimeError as error:
            said = " ".join(str(error).split())[:300]
            raise NumbenchError(f"{self.name}: {said}") from error
        if answers is not None:
            seconds = round(time.monotonic() - start, 6)
            return [
                self._completion(ask, answer, seconds, len(asks))
                for ask, answer in zip(asks, answers, strict=True)
            ]
        torch.cuda.empty_cache()
        if len(asks) == 1:
            return [failed(Failure(kind="item", message="the GPU's memory does not suffice"))]
        self._batches.most = half = len(asks) // 2
        return self._answer_all(asks[:half]) + self._answer_all(asks[half:])

    def _completion(self, ask: _Ask, answer: Generated, seconds: float, batch: int) -> Completion:
        """What an answer says that was generated in `seconds` in a batch of `batch`."""
        from bench.bittoken.answer import answer_json, said

        count = len(answer.tokens)
        if not answer.ended and count < ask.limit:
            why = f"stopped after {ask.timeout:g} seconds and {count} tokens without an end"
            return failed(Failure(kind="transient" if self._stop.is_set() else "item", message=why))
        text = said(answer.tokens, answer.values, self._loaded.lexicon)
        return Completion(
            text=answer_json(text, answer.ended),
            finish_reason="stop" if answer.ended else "length",
            usage=Usage(
                input=len(ask.question.tokens),
                reasoning=0,
                visible=count,
                generated=count,
                source="counted",
            ),
            latency=seconds,
            served_model=self.display,
            extra={"batch": batch, "device": str(self._loaded.network.lm_head.weight.device)},
        )


def _display(loaded: Loaded, folder: Path) -> str:
    """The name of the recipe that it was trained by, or else of its folder."""
    if came_along(folder):
        return f"numbench {folder.name}"
    recipe = loaded.training.get("recipe")
    named = recipe.get("name") if isinstance(recipe, dict) else None
    return str(named or folder.resolve().name)


def _load(name: str, folder: Path) -> Loaded:
    import torch

    from bench.bittoken.opening import open_checkpoint

    try:
        loaded = open_checkpoint(folder)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None
    loaded.network.to("cuda" if torch.cuda.is_available() else "cpu")
    return loaded
