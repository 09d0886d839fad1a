"""Models in this process: batches of concurrent requests, and reasoning in generated tokens."""

import asyncio
import threading
from collections.abc import Callable, Sequence

from numbench.errors import NumbenchError
from numbench.models import ModelProperties, RequestSettings
from numbench.models.local_inference import BatchItem, LocalAnswer, LocalModel
from numbench.thinking_text import split_tokens
from tests.support.case_tables import each_row


class Doubler(LocalModel):
    """Doubles numbers; fails for 0, and waits for `released` where a test sets it."""

    properties, device, end_token_ids = ModelProperties(), "cpu", frozenset([0])

    def __init__(self, max_batch_size: int = 3) -> None:
        super().__init__("doubler", max_batch_size)
        self.batches: list[list[int]] = []
        self.begun, self.released = threading.Event(), threading.Event()
        self.released.set()

    def _generate(
        self, items: Sequence[BatchItem], is_stopped: Callable[[], bool]
    ) -> list[tuple[list[int], int]]:
        self.batches.append([item.prompt for item in items])
        self.begun.set()
        assert self.released.wait(120)
        if 0 in self.batches[-1]:
            raise RuntimeError("zero")
        return [([0], 2 * item.prompt) for item in items]

    def _read(self, item: BatchItem, tokens: list[int], details: int) -> LocalAnswer:
        return LocalAnswer(str(details), len(tokens))

    async def double(self, value: int) -> str:
        return (await self._complete(value, 1, 9, RequestSettings())).text


def test_concurrent_requests_make_batches_of_limited_size() -> None:
    async def all_at_once() -> list[str]:
        return list(await asyncio.gather(*map(model.double, range(1, 9))))

    model = Doubler()
    assert asyncio.run(all_at_once()) == [str(2 * number) for number in range(1, 9)]
    assert model.batches == [[1, 2, 3], [4, 5, 6], [7, 8]]


def test_a_running_batch_does_not_block_the_event_loop() -> None:
    async def go() -> str:
        answer = asyncio.create_task(model.double(21))
        while not model.begun.is_set():
            await asyncio.sleep(0.01)
        model.released.set()
        return await answer

    model = Doubler()
    model.released.clear()
    assert asyncio.run(go()) == "42"


def test_a_failed_batch_raises_for_its_own_requests_only() -> None:
    async def go() -> list[str | BaseException]:
        return list(await asyncio.gather(*map(model.double, (0, 1)), return_exceptions=True))

    model = Doubler(max_batch_size=1)
    failure, answer = asyncio.run(go())
    assert isinstance(failure, NumbenchError)
    assert answer == "2"


def test_cancelled_requests_are_dropped_and_closing_ends_those_that_wait() -> None:
    async def go() -> None:
        first, second = (asyncio.create_task(model.double(n)) for n in (1, 2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "4"
        last = asyncio.create_task(model.double(3))
        await asyncio.sleep(0)
        await model.close()
        assert model.batches == [[2], [3]]
        assert await last == "6"

    model = Doubler()
    asyncio.run(go())


def characters(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def split_text(text: str, opened: bool = False) -> tuple[str, str | None]:
    """Return the answer and the reasoning in `text`, with one token per character."""
    answer, reasoning = split_tokens([ord(letter) for letter in text], characters, opened)
    return characters(answer), reasoning


@each_row(__file__, "closing_tags")
def test_reasoning_ends_after_its_closing_tag(
    text: str, opened: bool, answer: str, reasoning: str | None
) -> None:
    assert split_text(text, opened) == (answer, reasoning)


def test_a_token_with_the_closing_tag_counts_as_reasoning() -> None:
    pieces = ["<think>", "a", "</think>\n", "7"]

    def decode(tokens: Sequence[int]) -> str:
        return "".join(pieces[token] for token in tokens)

    assert split_tokens(range(4), decode, False) == ([3], "a")
