"""What models in this process share: batching, time limits, memory limits and file hashes."""

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
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from numbench.errors import BadInput, NumbenchError
from numbench.models.base import RequestSettings
from numbench.models.failures import failed_completion
from numbench.records import Completion, Failure

if TYPE_CHECKING:
    import torch

_BATCH_WINDOW_SECONDS = 0.02
"""How long a batch waits for further calls: short compared with the time that a batch takes."""

_MAX_ERROR_LENGTH = 300


class BatchItem(Protocol):
    """One prompt of a batch. limit: maximum number of new tokens. timeout: seconds."""

    @property
    def limit(self) -> int: ...
    @property
    def timeout(self) -> float: ...


ItemT = TypeVar("ItemT", bound=BatchItem)
OutputT = TypeVar("OutputT")


class BatchTiming(NamedTuple):
    """How long a batch took, in seconds, and how many prompts it contained."""

    seconds: float
    size: int


class LocalModel(ABC, Generic[ItemT, OutputT]):
    """Base class of networks in this process: greedy decoding of concurrent requests in batches.

    The requests that wait when a batch is finished make up the next one, of at most
    `max_batch_size`. A batch that needs more memory than there is is split in halves. It ends when
    the longest time limit of its prompts is over, or at the next token after `close`.
    """

    def __init__(self, name: str, max_batch_size: int) -> None:
        self.name = name
        self._max_batch_size = self._batch_size = max_batch_size
        self._stop = threading.Event()
        self._queue: list[tuple[ItemT, asyncio.Future[Completion]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def _batches(self, item: ItemT) -> Completion:
        """Return the completion of a prompt, from a batch. Raises what a batch raises."""
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._queue.append((item, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run_batches())
        return await future

    async def _run_batches(self) -> None:
        while self._queue:
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

    @abstractmethod
    def _generate(
        self, items: Sequence[ItemT], is_stopped: Callable[[], bool]
    ) -> Sequence[OutputT]:
        """Generate one output per item; end early, with what there is, once `is_stopped()`."""

    @abstractmethod
    def _completion(self, item: ItemT, output: OutputT, timing: BatchTiming) -> Completion:
        """Return the completion for the output of one item."""

    async def close(self) -> None:
        """Stop the running batch at its next token; the next one may be of full size again."""
        self._stop.set()
        for _, future in self._queue:
            future.cancel()
        if self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])
        self._worker = None
        self._stop.clear()
        self._batch_size = self._max_batch_size

    def _answer_batch(self, items: Sequence[ItemT]) -> list[Completion]:
        """Return one completion per item. Raises NumbenchError for a failure of the machine."""
        import torch

        start = time.monotonic()
        deadline = start + max(item.timeout for item in items)
        try:
            outputs = self._generate(
                items, lambda: self._stop.is_set() or time.monotonic() > deadline
            )
        except torch.OutOfMemoryError:
            # The error refers to the batch's tensors: handle it after the except block.
            outputs = None
        except RuntimeError as error:
            raise NumbenchError(f"{self.name}: {one_line(error)}") from error
        if outputs is not None:
            timing = BatchTiming(round(time.monotonic() - start, 6), len(items))
            return [
                self._completion(item, output, timing)
                for item, output in zip(items, outputs, strict=True)
            ]
        torch.cuda.empty_cache()
        if len(items) == 1:
            return [item_failure("out of GPU memory")]
        self._batch_size = half = len(items) // 2
        return self._answer_batch(items[:half]) + self._answer_batch(items[half:])

    def _unfinished(self, item: ItemT, token_count: int) -> Completion:
        """Return the completion of an output that ended before its end token and its limit."""
        message = f"timed out after {item.timeout:g} s and {token_count} tokens"
        if self._stop.is_set():
            message = f"stopped after {token_count} tokens"
        return failed_completion(
            Failure(kind="transient" if self._stop.is_set() else "item", message=message)
        )


def unsupported_temperature(settings: RequestSettings) -> Completion | None:
    """Return the failure of a request with a temperature above 0, None for any other."""
    if not settings.temperature:
        return None
    message = "models in this process support temperature 0 only"
    return failed_completion(Failure(kind="run", message=message))


def context_failure(token_count: int, context: int) -> Completion:
    """Return the failure of a prompt that leaves no room for an answer."""
    return item_failure(f"the prompt's {token_count} tokens fill the context of {context}")


def item_failure(message: str) -> Completion:
    """Return a failure that concerns one item only and is permanent."""
    return failed_completion(Failure(kind="item", message=message))


def one_line(error: BaseException) -> str:
    """Return the message of an error as one short line."""
    return " ".join(str(error).split())[:_MAX_ERROR_LENGTH]


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
        lines = pool.map(lambda path: f"{path.name} {_sha256(path)}\n", ordered)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
