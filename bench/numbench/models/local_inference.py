"""What models in this process share: concurrent requests are answered in batches."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from numbench.dataset.store import sha256_of
from numbench.errors import BadInput, NumbenchError
from numbench.models.base import RequestSettings
from numbench.models.failures import (
    failed_completion,
    run_failure,
    sanitize_line,
    transient_failure,
)
from numbench.models.providers import ModelProperties
from numbench.records import Completion, Failure, Usage

if TYPE_CHECKING:
    import torch

_BATCH_WINDOW_SECONDS = 0.02
"""How long a batch waits for the next call: short compared with the time that a batch takes."""


class BatchItem(NamedTuple):
    """One prompt of a batch.

    prompt: what `_generate` reads. token_count: of the prompt. limit: maximum number of new tokens.
    timeout: seconds.
    """

    prompt: Any
    token_count: int
    limit: int
    timeout: float


class LocalAnswer(NamedTuple):
    """The text of new tokens, and the number of those that are not reasoning."""

    text: str
    visible_tokens: int
    reasoning_text: str | None = None


class LocalModel(ABC):
    """Base class of networks in this process: greedy decoding of concurrent requests in batches.

    The requests that wait when a batch is finished make up the next one, of at most
    `max_batch_size`. A batch that needs more memory than there is is split in halves. It ends when
    the longest time limit of its prompts is over, or at the next token after `close`.
    """

    properties: ModelProperties
    device: str
    end_token_ids: frozenset[int]

    def __init__(self, name: str, max_batch_size: int) -> None:
        self.name = name
        self._max_batch_size = self._batch_size = max_batch_size
        self._stop = threading.Event()
        self._queue: list[tuple[BatchItem, asyncio.Future[Completion]]] = []
        self._worker: asyncio.Task[None] | None = None

    @abstractmethod
    def _generate(
        self, items: Sequence[BatchItem], is_stopped: Callable[[], bool]
    ) -> Sequence[tuple[list[int], Any]]:
        """Return the new tokens of each item, and what else `_read` needs.

        Ends early, with what there is, once `is_stopped()`.
        """

    @abstractmethod
    def _read(self, item: BatchItem, tokens: list[int], details: Any) -> LocalAnswer:
        """Return the answer in the new tokens of an item."""

    async def _complete(
        self, prompt: Any, token_count: int, context: int, settings: RequestSettings
    ) -> Completion:
        """Return the completion of a prompt, from a batch. Raises what a batch raises.

        context: maximum number of tokens of prompt and answer together.
        """
        if settings.temperature:
            failure = run_failure("models in this process support temperature 0 only")
            return failed_completion(failure)
        longest = settings.max_tokens or self.properties.settings.max_tokens or context
        limit = min(longest, context - token_count)
        if limit < 1:
            return item_failure(f"the prompt's {token_count} tokens fill the context of {context}")
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._queue.append((BatchItem(prompt, token_count, limit, settings.timeout), future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run_batches())
        return await future

    async def _run_batches(self) -> None:
        while self._queue:
            # The answers of the last batch are stored one after the other.
            count = 0
            while count < len(self._queue) < self._batch_size:
                count = len(self._queue)
                await asyncio.sleep(_BATCH_WINDOW_SECONDS)
            waiting = [call for call in self._queue if not call[1].done()]
            batch, self._queue = waiting[: self._batch_size], waiting[self._batch_size :]
            if not batch:
                continue
            working = asyncio.to_thread(self._answer_batch, [item for item, _ in batch])
            (outcome,) = await asyncio.gather(working, return_exceptions=True)
            for number, (_, future) in enumerate(batch):
                if future.done():
                    continue
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome[number])

    async def close(self) -> None:
        """Stop the batches of the waiting requests; the next one may be of full size again."""
        self._stop.set()
        if self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])
        self._worker = None
        self._stop.clear()
        self._batch_size = self._max_batch_size

    def _answer_batch(self, items: Sequence[BatchItem]) -> list[Completion]:
        """Return one completion per item. Raises NumbenchError for a failure of the machine."""
        import torch

        start = time.monotonic()
        deadline = start + max(item.timeout for item in items)
        try:
            outputs = self._generate(
                items, lambda: self._stop.is_set() or time.monotonic() > deadline
            )
        except torch.OutOfMemoryError:
            # It refers to the batch's tensors, which only the end of this block frees.
            pass
        except RuntimeError as error:
            raise NumbenchError(f"{self.name}: {sanitize_line(str(error), ())}") from error
        else:
            seconds, extra = time.monotonic() - start, {"batch": len(items), "device": self.device}
            return [
                msgspec.structs.replace(
                    self._completion(item, *output), latency=round(seconds, 6), extra=extra
                )
                for item, output in zip(items, outputs, strict=True)
            ]
        torch.cuda.empty_cache()
        if len(items) == 1:
            return [item_failure("out of GPU memory")]
        self._batch_size = half = len(items) // 2
        return self._answer_batch(items[:half]) + self._answer_batch(items[half:])

    def _completion(self, item: BatchItem, tokens: list[int], details: Any) -> Completion:
        count, ended = len(tokens), bool(tokens) and tokens[-1] in self.end_token_ids
        if not ended and count < item.limit:
            if self._stop.is_set():
                return failed_completion(transient_failure(f"stopped after {count} tokens"))
            return item_failure(f"timed out after {item.timeout:g} s and {count} tokens")
        answer = self._read(item, tokens, details)
        return Completion(
            text=answer.text,
            reasoning_text=answer.reasoning_text,
            finish_reason="stop" if ended else "length",
            usage=Usage(
                input=item.token_count,
                reasoning=count - answer.visible_tokens,
                visible=answer.visible_tokens,
                generated=count,
                source="counted",
            ),
            served_model=self.properties.display,
        )


def item_failure(message: str) -> Completion:
    """Return a failure that concerns one item only and is permanent."""
    return failed_completion(Failure(kind="item", message=message))


def require_local_extra(name: str, packages: Iterable[str]) -> None:
    """Raise BadInput if one of the packages that the model `name` needs is not installed."""
    if any(find_spec(package) is None for package in packages):
        raise BadInput(f"{name} needs an extra: pip install 'numbench[local]'")


def default_device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def hash_files(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files, independent of their order."""
    ordered = sorted(files)
    with ThreadPoolExecutor(8) as pool:
        lines = pool.map(lambda path: f"{path.name} {sha256_of(path)}\n", ordered)
        return hashlib.sha256("".join(lines).encode()).hexdigest()
