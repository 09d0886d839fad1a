"""Preparation of batches during training: in a thread, or in processes of their own.

A thread makes several 100,000 tokens per second, enough for a CPU; a fast GPU needs processes. With
n processes, process i prepares the batches of steps i, i + n, i + 2n, … from its own random
streams, so that results depend on the number of processes but not on their speed.
"""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from bittoken.training.mixture import Batch, BatchSize, DataLoader, Mixture
from bittoken.training.recipe import Recipe
from bittoken.training.text_data import open_text_data
from bittoken.vocabulary import Vocabulary
from numbench.errors import BadInput, NumbenchError


class BatchSource(Protocol):
    """Prepares the batches of a training process.

    depth: how many batches to request ahead of the one in training.
    """

    depth: int

    def request(self, step: int) -> None:
        """Start preparing the batch of a step; steps are requested in order."""
        ...

    def receive(self, step: int) -> Batch:
        """Return the batch of a requested step."""
        ...

    def update(self, mixture: Mixture) -> None:
        """Use the shares of `mixture` for later requests; none may be outstanding."""
        ...

    def close(self) -> None:
        """Release threads or processes."""
        ...


class BatchThread:
    """Prepares batches in a thread of the training process."""

    depth = 1

    def __init__(self, mixture: Mixture, loader: DataLoader, size: BatchSize) -> None:
        self._mixture, self._loader, self._size = mixture, loader, size
        self._thread = ThreadPoolExecutor(1)
        self._batches: dict[int, Future[Batch]] = {}

    def request(self, step: int) -> None:
        self._batches[step] = self._thread.submit(self._mixture.batch, self._loader, self._size)

    def receive(self, step: int) -> Batch:
        return self._batches.pop(step).result()

    def update(self, mixture: Mixture) -> None:
        """The thread uses the training's mixture itself."""

    def close(self) -> None:
        self._thread.shutdown()


class BatchProcesses:
    """Prepares batches in `recipe.training.data_processes` processes.

    It is also the loader whose state is saved: that of all processes.
    """

    def __init__(
        self, recipe: Recipe, folder: Path, size: BatchSize, rank: int, world_size: int
    ) -> None:
        """folder: of the training, with its text vocabulary. rank, world_size: of this process."""
        count = recipe.training.data_processes
        self.depth = 2 * count
        self._tasks = tuple(task for task in recipe.data.tasks if task != "text")
        context = multiprocessing.get_context("spawn")
        self._processes: list[BaseProcess] = []
        self._connections: list[Connection] = []
        for index in range(count):
            ours, theirs = context.Pipe()
            arguments = (theirs, recipe, folder, size, rank * count + index, world_size * count)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._connections.append(ours)

    @property
    def buffered_tasks(self) -> tuple[str, ...]:
        """The names of the sample buffers of all processes."""
        indices = range(len(self._connections))
        return tuple(_buffer_name(index, task) for index in indices for task in self._tasks)

    def request(self, step: int) -> None:
        self._send(step % len(self._connections), "batch", None)

    def receive(self, step: int) -> Batch:
        batch: Batch = self._receive(step % len(self._connections))
        return batch

    def update(self, mixture: Mixture) -> None:
        state = mixture.state()
        for index in range(len(self._connections)):
            self._send(index, "update", state)

    def state(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """Return the state for `restore`: plain values, and the buffered samples."""
        metadata: dict[str, Any] = {}
        buffers: dict[str, pa.Table] = {}
        for index in range(len(self._connections)):
            self._send(index, "state", None)
        for index in range(len(self._connections)):
            metadata[str(index)], tables = self._receive(index)
            buffers |= {_buffer_name(index, task): table for task, table in tables.items()}
        return metadata, buffers

    def restore(self, metadata: dict[str, Any], samples: dict[str, pa.Table]) -> None:
        """Continue from the state of as many processes with the same recipe."""
        for index in range(len(self._connections)):
            tables = {task: samples[_buffer_name(index, task)] for task in self._tasks}
            self._send(index, "restore", (metadata[str(index)], tables))

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join()

    def _send(self, index: int, command: str, argument: Any) -> None:
        try:
            self._connections[index].send((command, argument))
        except OSError as error:
            raise self._failure(index) from error

    def _receive(self, index: int) -> Any:
        try:
            result = self._connections[index].recv()
        except (EOFError, OSError) as error:
            raise self._failure(index) from error
        if isinstance(result, Exception):
            raise result
        return result

    def _failure(self, index: int) -> NumbenchError:
        self._processes[index].join()
        code = self._processes[index].exitcode
        return NumbenchError(
            f"data process {index} ended with exit code {code}; run the same command again to "
            "resume from the last saved step"
        )


def _buffer_name(index: int, task: str) -> str:
    return f"{index}-{task}"


class _ProcessContext:
    """What a data process needs to know to open the text; it writes no files."""

    is_main_process = False

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size

    def barrier(self) -> None:
        """The training process has written the vocabulary already."""


def _serve(
    connection: Connection, recipe: Recipe, folder: Path, size: BatchSize, rank: int, world: int
) -> None:
    """Answer requests until the training process closes the connection."""
    # A keyboard interrupt reaches all processes; the training process handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preparation: _Preparation | None = None
    while True:
        try:
            command, argument = connection.recv()
        except (EOFError, OSError):
            return
        try:
            preparation = preparation or _Preparation(recipe, folder, size, rank, world)
            result = getattr(preparation, command)(argument)
        except (BadInput, NumbenchError) as error:
            result = error
        if result is not None:
            connection.send(result)


class _Preparation:
    """The loader and mixture of a data process; each method answers one command."""

    def __init__(
        self, recipe: Recipe, folder: Path, size: BatchSize, rank: int, world: int
    ) -> None:
        text = open_text_data(recipe, folder, _ProcessContext(rank, world))
        vocabulary = Vocabulary(recipe.model.encoding, text.bpe.tokens if text else ())
        stream = text.stream("train", vocabulary) if text else None
        self._loader = DataLoader(recipe, vocabulary, "train", rank, stream, world_size=world)
        self._mixture = Mixture(recipe, self._loader.scales)
        self._size = size

    def batch(self, _argument: None) -> Batch:
        return self._mixture.batch(self._loader, self._size)

    def update(self, state: dict[str, Any]) -> None:
        self._mixture.restore_shares(state)

    def state(self, _argument: None) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        metadata, tables = self._loader.state()
        return {"mixture": self._mixture.state(), "loader": metadata}, tables

    def restore(self, saved: tuple[dict[str, Any], dict[str, pa.Table]]) -> None:
        metadata, tables = saved
        self._mixture.restore(metadata["mixture"])
        self._loader.restore(metadata["loader"], tables)
